"""The walk-through, one function a step, in the order of `STEPS`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ops.demo.bitcoin import spend_bitcoins
from ops.demo.callers import Answer, DemoFailed
from ops.demo.dollars import pay_in_dollars
from ops.demo.keyless import call_an_api
from ops.demo.printout import Printout, ether
from ops.demo.purchases import buy_calls
from ops.demo.quorum import agree_on_a_transfer
from ops.demo.world import World

_HUNDREDTH = 10**16
_FUNDS, _LIMIT, _THRESHOLD = 500 * _HUNDREDTH, 100 * _HUNDREDTH, 25 * _HUNDREDTH
_SMALL, _LARGE, _PIECE, _PIECES = _HUNDREDTH, 50 * _HUNDREDTH, 7 * _HUNDREDTH, 20


async def _make_agent(world: World, out: Printout) -> None:
    made = await world.tenant.do("POST", "/agents", {"id": world.agent, "name": "Buyer of the walk-through"})
    token = await world.tenant.do("POST", f"/agents/{world.agent}/token", {"expiresIn": "1h"})
    world.token, world.as_agent = token["token"], world.tenant.with_token(token["token"])
    world.tenant_id = made["tenantId"]
    wallet = made["walletAddresses"]["evm"]
    await world.chain.fund(wallet, _FUNDS)
    out.line("agent", f"{world.agent} of tenant {world.tenant_id}; it has a token for an hour and no key")
    out.line("EVM wallet", wallet)
    out.line("Solana wallet", made["walletAddresses"]["solana"])
    out.amount("wallet holds", await world.chain.balance(wallet), "of play money, from the local chain")


async def _set_policies(world: World, out: Printout) -> None:
    rules: list[dict[str, Any]] = [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(_LIMIT)}},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(_THRESHOLD)}},
        {"type": "approved-addresses", "enabled": True, "config": {"addresses": [world.shop, world.supplier]}},
    ]
    stored = await world.tenant.do("PUT", f"/agents/{world.agent}/policies", rules)
    if len(stored) != len(rules):
        raise DemoFailed(f"{len(stored)} rules were stored instead of {len(rules)}")
    out.amount("at most", _LIMIT, "in any 24 hours")
    out.amount("above", _THRESHOLD, "a person decides")
    out.line("only to", f"{world.shop} (shop)")
    out.line("", f"{world.supplier} (supplier)")


async def _pay_little(world: World, out: Printout) -> None:
    answer = await world.pay(world.shop, _SMALL)
    if answer.status != 200:
        raise DemoFailed(f"the small payment was not signed ({answer.status}): {answer.error}")
    out.amount("signed", _SMALL, "to the shop, at once")
    await _show_mined(world, out, answer.data["txHash"], "shop", world.shop)


async def _pay_much(world: World, out: Printout) -> None:
    answer = await world.pay(world.supplier, _LARGE)
    if answer.status != 202:
        raise DemoFailed(f"the large payment was not queued ({answer.status}): {answer.error}")
    out.amount("queued", _LARGE, "to the supplier: a person must decide, nothing is signed")
    waiting = await world.tenant.get("/approvals?limit=200")
    item = next(one for one in waiting if one["txId"] == answer.data["txId"])
    path = f"/approvals/{item['id']}/approve"
    # The digest ties the decision to the very order that was shown.
    approved = await world.tenant.do("POST", path, {"digest": item["digest"]}, status=200)
    out.amount("approved", int(item["value"]), "by the tenant; judged again by today's policies, then signed")
    await _show_mined(world, out, approved["txHash"], "supplier", world.supplier)


async def _pay_a_stranger(world: World, out: Printout) -> None:
    answer = await world.pay(world.stranger, _SMALL)
    if answer.status != 403:
        raise DemoFailed(f"the forbidden payment was not refused ({answer.status})")
    out.amount("refused", _SMALL, f"to {world.stranger} (a stranger)")
    _show_reasons(answer, out)
    out.amount("a stranger has", await world.chain.balance(world.stranger))


async def _pay_in_parallel(world: World, out: Printout) -> None:
    before = await world.spent_today()
    out.amount("spent so far", before, f"of {ether(_LIMIT)}")
    out.amount("asked", _PIECE, f"{_PIECES} times at once: {ether(_PIECES * _PIECE)} ETH in all")
    answers = await asyncio.gather(*(world.pay(world.shop, _PIECE) for _ in range(_PIECES)))
    signed, refused = ([one for one in answers if one.status == status] for status in (200, 403))
    fits = (_LIMIT - before) // _PIECE
    out.line("signed", f"{len(signed)} of {_PIECES}, exactly what fits; refused {len(refused)}")
    if refused:
        _show_reasons(refused[0], out)
    spent = await world.spent_today()
    out.amount("ledger says", spent, f"of {ether(_LIMIT)}")
    if (len(signed), len(refused), spent) != (fits, _PIECES - fits, before + fits * _PIECE):
        others = {f"{one.status} {one.error}" for one in answers if one.status not in {200, 403}}
        raise DemoFailed("; ".join([f"{fits} should have been signed and {_PIECES - fits} refused", *sorted(others)]))
    for one in signed:
        await world.chain.wait_for_block(one.data["txHash"])
    out.amount("the shop has", await world.chain.balance(world.shop), "on the chain")


async def _agree(world: World, out: Printout) -> None:
    # The limit of the day is spent; and what waits at the end must be something that a person could allow.
    rules = [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(2 * _LIMIT)}},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(_THRESHOLD)}},
    ]
    await world.tenant.do("PUT", f"/agents/{world.agent}/policies", rules)
    await agree_on_a_transfer(world, out)


async def _leave_one(world: World, out: Printout) -> None:
    answer = await world.pay(world.supplier, _LARGE)
    if answer.status != 202:
        raise DemoFailed(f"the last payment was not queued ({answer.status}): {answer.error}")
    out.amount("queued", _LARGE, "to the supplier: it waits for you, in another terminal:")
    out.command(world.console)


def _show_reasons(refused: Answer, out: Printout) -> None:
    for result in refused.data["results"]:
        if not result["passed"]:
            out.line("because", f"{result['type']}: {result['reason']}")


async def _show_mined(world: World, out: Printout, tx_hash: str, who: str, address: str) -> None:
    out.line("transaction", tx_hash)
    out.line("mined in", f"block {await world.chain.wait_for_block(tx_hash)}")
    out.amount(f"the {who} has", await world.chain.balance(address), "on the chain")


STEPS: tuple[tuple[str, Callable[[World, Printout], Awaitable[None]]], ...] = (
    ("An agent gets a wallet", _make_agent),
    ("Its tenant sets the policies", _set_policies),
    ("A small payment is signed", _pay_little),
    ("A large payment waits for a person", _pay_much),
    ("A forbidden payment is refused", _pay_a_stranger),
    ("Many payments at once stop at the limit", _pay_in_parallel),
    ("An API is called without its key", call_an_api),
    ("Two of three services agree to a transfer", _agree),
    ("An agent pays in dollars", pay_in_dollars),
    ("An agent buys API calls until its budget ends", buy_calls),
    ("An agent spends bitcoins", spend_bitcoins),
    ("A payment waits for you", _leave_one),
)
