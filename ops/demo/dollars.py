"""The step in which an agent pays in a token, under limits in units of that token."""

from typing import Any

from ops.demo.callers import USDC, Answer, DemoFailed
from ops.demo.printout import Printout
from ops.demo.world import World

_DOLLAR = 10**6
_HAS, _LIMIT, _PRICE, _TOO_MUCH = 500 * _DOLLAR, 100 * _DOLLAR, 25 * _DOLLAR, 80 * _DOLLAR


async def pay_in_dollars(world: World, out: Printout) -> None:
    """Add a limit in USDC, pay within it, and ask for more than is left."""
    wallet = (await world.tenant.get(f"/agents/{world.agent}"))["walletAddresses"]["evm"]
    await world.chain.fund_usdc(wallet, _HAS)
    rules: list[dict[str, Any]] = await world.tenant.get(f"/agents/{world.agent}/policies")
    kept = [{name: rule[name] for name in ("type", "enabled", "config")} for rule in rules]
    limit = {"maxPerDay": str(_LIMIT), "asset": f"evm:31337:{USDC}"}
    await world.tenant.do(
        "PUT",
        f"/agents/{world.agent}/policies",
        [*kept, {"type": "spending-limit", "enabled": True, "config": limit}],
    )
    out.line("wallet holds", f"{_HAS // _DOLLAR} USDC of play money, at {USDC}")
    out.line("at most", f"{_LIMIT // _DOLLAR} USDC in any 24 hours")
    paid = await _pay(world, world.shop, _PRICE)
    if paid.status != 200:
        raise DemoFailed(f"the payment in USDC was not signed ({paid.status}): {paid.error}")
    out.line("signed", f"{_PRICE // _DOLLAR} USDC to the shop")
    out.line("transaction", paid.data["txHash"])
    out.line("mined in", f"block {await world.chain.wait_for_block(paid.data['txHash'])}")
    out.line("the shop has", f"{await world.chain.usdc(world.shop) // _DOLLAR} USDC on the chain")
    refused = await _pay(world, world.shop, _TOO_MUCH)
    if refused.status != 403:
        raise DemoFailed(f"the payment above the limit in USDC was not refused ({refused.status})")
    out.line("refused", f"{_TOO_MUCH // _DOLLAR} USDC to the shop")
    for result in refused.data["results"]:
        if not result["passed"]:
            out.line("because", f"{result['type']}: {result['reason']}")


async def _pay(world: World, to: str, units: int) -> Answer:
    data = "0xa9059cbb" + to.removeprefix("0x").rjust(64, "0") + f"{units:064x}"
    body = {"to": USDC, "value": "0", "data": data}
    return await world.as_agent.ask("POST", f"/vault/{world.agent}/sign", body)
