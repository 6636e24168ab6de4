"""Charge priced calls before they leave, and give back what metered ones left of it.

The price is the one that the route has under its MAC, never the word of the proxy. A charge is judged and guarded as an
order is: it commits only if what it was judged on has not changed, and the route neither.
"""

import asyncio
from typing import Any, Final

import asyncpg
import msgspec

from custody.credentials.types import RouteFields
from custody.kit.db import DatabaseAway, tenant_scope
from custody.kit.errors import CustodyError, Unavailable
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof
from custody.protocol.signer.calls import ChargeCall, Charged, ChargeEnded, EndCharge
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.refusals import CredentialRouteAbsent
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from signer import ledger, priced_calls, reveal
from signer.context import Signer
from signer.credentials import open_route
from signer.decide import OPTIMISTIC_TRIES
from signer.guarded_write import SETTLE_SECONDS, hold
from signer.kept_state import Since, State
from signer.ledger import Guard, Question
from signer.priced_calls import Price, PricedCall
from signer.together import charge_together
from signer.waiting import CallWaiter

_READ: Final = "SELECT * FROM charge_read($1, $2)"
_RETURN: Final = "SELECT return_charge($1, $2, $3)"
# A call needs no wallet.
_NO_WALLET: Final = ("", None)


async def charge(signer: Signer, message: ChargeCall, call: Call[ProvenAgent]) -> Charged:
    """Charge a call at its route's price, or refuse it for what the agent's rules say."""
    caller = call.caller
    ref = AgentRef(caller.tenant, caller.agent)
    priced = PricedCall(ref, caller, message.call, message.route, await _price(signer, message.route, caller))
    if not priced.price.fields.charge:
        return Charged(0)
    # First, so that no call is charged whose caller would hear of a database that is away instead.
    await signer.quotas.know(ref.tenant)
    waiter = CallWaiter(priced)
    try:
        with signer.waiting.join(ref, waiter):
            async with signer.queues.turn_of(ref.tenant, ref.agent):
                signer.waiting.leave(ref, waiter)
                if not waiter.is_done:
                    priced = await _charge(signer, priced)
    except TooManyWaiting:
        raise Busy from None
    return Charged(priced.price.fields.charge)


async def end(signer: Signer, message: EndCharge, call: Call[None]) -> ChargeEnded:
    """Give back what a call's tokens leave of its charge, by the prices that its route has now; once.

    Of a route that is gone or not metered any more nothing comes back.
    """
    async with tenant_scope(signer.pool, message.tenant) as connection:
        row = await connection.fetchrow(_READ, message.tenant, message.call)
    if row is None or row["fields"] is None:
        return ChargeEnded(0)
    route, secret = str(row["route_id"]), None if row["secret_id"] is None else str(row["secret_id"])
    said = open_route(signer.sealer, message.tenant, route, secret, (row["fields"], row["mac"]))
    back = _rest(said, message, row["micro_usd"])
    if back <= 0:
        return ChargeEnded(0)
    async with signer.pool.acquire() as connection:
        done = await connection.fetchval(_RETURN, message.tenant, message.call, back)
    return ChargeEnded(back if done else 0)


def _rest(said: RouteFields, message: EndCharge, charged: int) -> int:
    return 0 if said.usage is None else max(charged - said.usage.cost(message.counts), 0)


async def _price(signer: Signer, route: str, caller: ProvenAgent, *, fresh: bool = False) -> Price:
    key = caller.tenant, route
    price = None if fresh else signer.route_prices.get(key)
    if price is None:
        row, _, said = await reveal.judge(signer, route, caller)
        price = Price(said, row["mac"])
        # No write compares the MAC of a route whose calls cost nothing, so that one is read each time.
        if said.charge:
            signer.route_prices.put(key, price)
        else:
            signer.route_prices.drop(key)
    if not price.fields.serves(caller.agent):
        raise CredentialRouteAbsent
    if not price.fields.enabled:
        raise reveal.RouteDisabled
    return price


async def _charge(signer: Signer, call: PricedCall) -> PricedCall:
    """The call as it was charged, in its agent's turn."""
    for number in range(OPTIMISTIC_TRIES):
        if await _try(signer, call, first=number == 0):
            return call
        signer.counters["stale"] += 1
        if await _is_charged(signer, call):
            return call
        # Whatever had changed, perhaps it was the route.
        call = msgspec.structs.replace(call, price=await _price(signer, call.route, call.caller, fresh=True))
        if not call.price.fields.charge:
            return call
    if await _charge_locked(signer, call):
        return call
    raise Busy


async def _try(signer: Signer, call: PricedCall, *, first: bool) -> bool:
    """Try once, with no lock; false when something changed between the read and the write."""
    state = signer.kept.of_agent(call.ref) if first else None
    try:
        if state is not None and (row := _on_kept_state(signer, call, state)) is not None:
            return await charge_together(signer, call, row, state)
        state = await _read(signer, call)
        row = priced_calls.evaluate(signer, call, state.facts, locked=False)
        return row is not None and await charge_together(signer, call, row, state)
    except DatabaseAway:
        return await _settle(signer, call)


def _on_kept_state(signer: Signer, call: PricedCall, state: State) -> ledger.ChargeRow | None:
    """Judge without a read; what is refused is judged again on what is read."""
    try:
        row = priced_calls.evaluate(signer, call, state.facts, locked=False)
    except CustodyError:
        row = None
    if row is None:
        signer.kept.forget(call.ref)
    return row


async def _read(signer: Signer, call: PricedCall) -> State:
    began = signer.kept.now()
    async with signer.pool.acquire() as connection:
        facts = await ledger.read(connection, _question(call))
    if facts is None:
        raise BadProof
    return State(facts, Since(facts.now, began, signer.kept.now()), _NO_WALLET)


def _question(call: PricedCall) -> Question:
    return Question(ref=call.ref, family=_NO_WALLET[0], principal=call.caller.principal, key=None)


async def _charge_locked(signer: Signer, call: PricedCall) -> bool:
    """Charge it under the agent's row lock: somebody else keeps changing this agent."""
    try:
        async with signer.pool.acquire() as connection, connection.transaction():
            await ledger.lock_with_sets(connection, call.ref)
            facts = await ledger.read(connection, _question(call))
            row = priced_calls.evaluate(signer, call, facts, locked=True)
            if row is None or facts is None:
                return False
            what = ledger.to_write(call.ref, facts, (), Guard(epoch=call.caller.epoch), (row,))
            with hold(signer, call.ref.tenant, (), 1) as held:
                if done := await ledger.write(connection, what) == "done":
                    held.keep()
    except DatabaseAway:
        return await _settle(signer, call)
    except asyncpg.UniqueViolationError:
        return await _is_charged(signer, call)
    except asyncpg.PostgresError as problem:
        if problem.sqlstate != ledger.NO_ROOM:
            raise
        return False
    if done:
        signer.acknowledged.remember(call.ref, facts.incarnation, facts.ledger_version + 1)
    return done


async def _is_charged(signer: Signer, call: PricedCall) -> bool:
    async with tenant_scope(signer.pool, call.ref.tenant) as connection:
        return await _is_there(connection, call)


async def _is_there(connection: Any, call: PricedCall) -> bool:
    """Say whether a call of this agent was charged before under the same id."""
    agent = await connection.fetchval(
        "SELECT agent_id FROM call_charges WHERE tenant_id = $1 AND id = $2", call.ref.tenant, call.id
    )
    return bool(agent == call.ref.agent)


async def _settle(signer: Signer, call: PricedCall) -> bool:
    """The connection died at the commit: find out whether it happened, as `settle_broken_commit` does for an order."""
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            async with signer.pool.acquire() as connection, connection.transaction():
                await ledger.lock(connection, call.ref)
                if not (found := await _is_there(connection, call)):
                    await ledger.raise_version(connection, call.ref)
            signer.counters["broken_commits"] += 1
            return found
        except (*DatabaseAway, asyncpg.PostgresError):
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable from None
            await asyncio.sleep(0.05)
