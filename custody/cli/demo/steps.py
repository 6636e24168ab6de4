"""What the walk-through does, one function a step, in the order of `STEPS`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from custody.cli.demo.callers import Answer, DemoFailed
from custody.cli.demo.keyless import call_an_api
from custody.cli.demo.paper import Paper, ether
from custody.cli.demo.scene import Scene

_HUNDREDTH = 10**16
_FUNDS, _LIMIT, _THRESHOLD = 500 * _HUNDREDTH, 100 * _HUNDREDTH, 25 * _HUNDREDTH
_SMALL, _LARGE, _PIECE, _PIECES = _HUNDREDTH, 50 * _HUNDREDTH, 7 * _HUNDREDTH, 20


async def _make_agent(scene: Scene, paper: Paper) -> None:
    made = await scene.tenant.do("POST", "/agents", {"id": scene.agent, "name": "Buyer of the walk-through"})
    token = await scene.tenant.do("POST", f"/agents/{scene.agent}/token", {"expiresIn": "1h"})
    scene.token, scene.as_agent = token["token"], scene.tenant.with_token(token["token"])
    wallet = made["walletAddresses"]["evm"]
    await scene.chain.fund(wallet, _FUNDS)
    paper.line("agent", f"{scene.agent} of tenant {made['tenantId']}; it holds a token for an hour and no key")
    paper.line("EVM wallet", wallet)
    paper.line("Solana wallet", made["walletAddresses"]["solana"])
    paper.amount("wallet holds", await scene.chain.balance(wallet), "of play money, from the local chain")


async def _set_policies(scene: Scene, paper: Paper) -> None:
    rules: list[dict[str, Any]] = [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(_LIMIT)}},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(_THRESHOLD)}},
        {"type": "approved-addresses", "enabled": True, "config": {"addresses": [scene.shop, scene.supplier]}},
    ]
    stored = await scene.tenant.do("PUT", f"/agents/{scene.agent}/policies", rules)
    if len(stored) != len(rules):
        raise DemoFailed(f"{len(stored)} rules were stored instead of {len(rules)}")
    paper.amount("at most", _LIMIT, "in any 24 hours")
    paper.amount("above", _THRESHOLD, "a person decides")
    paper.line("only to", f"{scene.shop} (shop)")
    paper.line("", f"{scene.supplier} (supplier)")


async def _pay_little(scene: Scene, paper: Paper) -> None:
    answer = await scene.pay(scene.shop, _SMALL)
    if answer.status != 200:
        raise DemoFailed(f"the small payment was not signed ({answer.status}): {answer.error}")
    paper.amount("signed", _SMALL, "to the shop, at once")
    await _show_mined(scene, paper, answer.data["txHash"], "shop", scene.shop)


async def _pay_much(scene: Scene, paper: Paper) -> None:
    answer = await scene.pay(scene.supplier, _LARGE)
    if answer.status != 202:
        raise DemoFailed(f"the large payment was not queued ({answer.status}): {answer.error}")
    paper.amount("queued", _LARGE, "to the supplier: a person must decide, nothing is signed")
    waiting = await scene.tenant.get("/approvals?limit=200")
    item = next(one for one in waiting if one["txId"] == answer.data["txId"])
    path = f"/approvals/{item['id']}/approve"
    # The digest ties the decision to the very order that was shown.
    approved = await scene.tenant.do("POST", path, {"digest": item["digest"]}, status=200)
    paper.amount("approved", int(item["value"]), "by the tenant; judged again by today's policies, then signed")
    await _show_mined(scene, paper, approved["txHash"], "supplier", scene.supplier)


async def _pay_a_stranger(scene: Scene, paper: Paper) -> None:
    answer = await scene.pay(scene.stranger, _SMALL)
    if answer.status != 403:
        raise DemoFailed(f"the forbidden payment was not refused ({answer.status})")
    paper.amount("refused", _SMALL, f"to {scene.stranger} (a stranger)")
    _show_reasons(answer, paper)
    paper.amount("a stranger has", await scene.chain.balance(scene.stranger))


async def _pay_in_parallel(scene: Scene, paper: Paper) -> None:
    before = await scene.spent_today()
    paper.amount("spent so far", before, f"of {ether(_LIMIT)}")
    paper.amount("asked", _PIECE, f"{_PIECES} times at once: {ether(_PIECES * _PIECE)} ETH in all")
    answers = await asyncio.gather(*(scene.pay(scene.shop, _PIECE) for _ in range(_PIECES)))
    signed, refused = ([one for one in answers if one.status == status] for status in (200, 403))
    fits = (_LIMIT - before) // _PIECE
    paper.line("signed", f"{len(signed)} of {_PIECES}, exactly what fits; refused {len(refused)}")
    if refused:
        _show_reasons(refused[0], paper)
    spent = await scene.spent_today()
    paper.amount("ledger says", spent, f"of {ether(_LIMIT)}")
    if (len(signed), len(refused), spent) != (fits, _PIECES - fits, before + fits * _PIECE):
        others = {f"{one.status} {one.error}" for one in answers if one.status not in {200, 403}}
        raise DemoFailed("; ".join([f"{fits} should have been signed and {_PIECES - fits} refused", *sorted(others)]))
    for one in signed:
        await scene.chain.mined(one.data["txHash"])
    paper.amount("the shop has", await scene.chain.balance(scene.shop), "on the chain")


async def _leave_one(scene: Scene, paper: Paper) -> None:
    # The limit of the day is spent; what waits must be something that a person could allow.
    rules = [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(2 * _LIMIT)}},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(_THRESHOLD)}},
    ]  # fmt: skip
    await scene.tenant.do("PUT", f"/agents/{scene.agent}/policies", rules)
    answer = await scene.pay(scene.supplier, _LARGE)
    if answer.status != 202:
        raise DemoFailed(f"the last payment was not queued ({answer.status}): {answer.error}")
    paper.amount("queued", _LARGE, "to the supplier: it waits for you, in another terminal:")
    paper.command(scene.console)


def _show_reasons(refused: Answer, paper: Paper) -> None:
    for result in refused.data["results"]:
        if not result["passed"]:
            paper.line("because", f"{result['type']}: {result['reason']}")


async def _show_mined(scene: Scene, paper: Paper, tx_hash: str, who: str, address: str) -> None:
    paper.line("transaction", tx_hash)
    paper.line("mined in", f"block {await scene.chain.mined(tx_hash)}")
    paper.amount(f"the {who} has", await scene.chain.balance(address), "on the chain")


STEPS: tuple[tuple[str, Callable[[Scene, Paper], Awaitable[None]]], ...] = (
    ("An agent gets a wallet", _make_agent),
    ("Its tenant sets the policies", _set_policies),
    ("A small payment is signed", _pay_little),
    ("A large payment waits for a person", _pay_much),
    ("A forbidden payment is refused", _pay_a_stranger),
    ("Many payments at once stop at the limit", _pay_in_parallel),
    ("An API is called without its key", call_an_api),
    ("A payment waits for you", _leave_one),
)
