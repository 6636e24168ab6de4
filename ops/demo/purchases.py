"""The step in which an agent buys API calls by x402, until its budget ends."""

import ssl
from typing import Any

import httpx

from ops.demo.callers import USDC, Answer, DemoFailed
from ops.demo.printout import Printout, usdc
from ops.demo.seller import PRICE, Seller
from ops.demo.upstream import SOLD
from ops.demo.world import World

_ROOM, _CALLS = 100_000, 5


async def buy_calls(world: World, out: Printout) -> None:
    """Leave the agent a tenth of a dollar, and have it buy calls of two cents until it is refused."""
    seller = Seller(world.chain, world.seller)
    await seller.open_shop()
    world.upstream.seller = seller
    rules: list[dict[str, Any]] = await world.tenant.get(f"/agents/{world.agent}/policies")
    kept = [{name: rule[name] for name in ("type", "enabled", "config")} for rule in rules]
    spent = await world.spent_today(f"evm:31337:{USDC}")
    limit = {"asset": f"evm:31337:{USDC}", "maxPerDay": str(spent + _ROOM)}
    await _set(world, {"spending-limit": limit, "approved-addresses": {"addresses": [world.seller]}})
    out.line("the API sells", f"a call for {usdc(PRICE)}, to {world.seller}; it knows no key and no account")
    out.line("at most", f"{usdc(spent + _ROOM)} in any 24 hours, of which {usdc(spent)} are spent; only to this API")
    async with httpx.AsyncClient(verify=_trusting(world.upstream.certificate), trust_env=False) as client:
        bought = 0
        while (answer := await _buy(world, client)).status == 200:
            bought += 1
        out.line("bought", f"{bought} calls, each paid by the wallet before it was answered")
    if (answer.status, bought) != (403, _CALLS):
        raise DemoFailed(f"{_CALLS} calls should have been paid, not {bought} ({answer.status}): {answer.error}")
    out.line("refused", "the next one")
    for result in answer.data["results"]:
        if not result["passed"]:
            out.line("because", f"{result['type']}: {result['reason']}")
    earned = await world.chain.usdc(world.seller)
    out.line("the API has", f"{usdc(earned)} on the chain")
    if earned != _CALLS * PRICE:
        raise DemoFailed("the chain paid out another sum than was bought")
    await world.tenant.do("PUT", f"/agents/{world.agent}/policies", kept)


async def _buy(world: World, client: httpx.AsyncClient) -> Answer:
    """Call, have the demand paid, call again with the payment; the vault's answer to the demand."""
    url = f"https://{world.upstream.host}{SOLD}"
    demanded = await client.get(url)
    if demanded.status_code != 402:
        raise DemoFailed(f"the API demanded nothing ({demanded.status_code})")
    demand = {"demand": demanded.headers["PAYMENT-REQUIRED"], "resource": url}
    answer = await world.as_agent.ask("POST", f"/vault/{world.agent}/x402", demand)
    if answer.status == 200:
        paid = await client.get(url, headers={answer.data["header"]: answer.data["value"]})
        if paid.status_code != 200:
            raise DemoFailed(f"the API did not take the payment ({paid.status_code}): {paid.text[:200]}")
    return answer


async def _set(world: World, rules: dict[str, dict[str, Any]]) -> None:
    body = [{"type": kind, "enabled": True, "config": config} for kind, config in rules.items()]
    await world.tenant.do("PUT", f"/agents/{world.agent}/policies", body)


def _trusting(certificate: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=certificate)
    # The certificate stands for itself alone and names nobody who issued it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
