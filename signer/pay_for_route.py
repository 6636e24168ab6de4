"""A payment that the proxy asks for, because a server demands it of a request that a payment route covers.

The route as it was sealed says what may be paid, the agent's rules judge it besides, and what the proxy hands over is
read here once more: it chooses neither the offer nor a word of the payment.
"""

from typing import Any

import asyncpg

from custody.credentials.coverage import place_covers
from custody.credentials.payment_routes import PaymentRouteFields
from custody.credentials.target import parse_target
from custody.kit import clock
from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway, tenant_scope
from custody.kit.errors import Frozen
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.payments.choice import Allowed, choose
from custody.payments.demand import read_object
from custody.payments.orders import order_of
from custody.payments.refusals import OfferUnpayable, PaymentExpired
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.outcomes import NeedsPreparation, Queued, Refused, Signed
from custody.protocol.signer.payment_routes import PayForRoute, RoutePaid
from custody.protocol.signer.refusals import PaymentRouteAbsent
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from signer.context import Signer
from signer.direct import Direct
from signer.orders.kind import Inputs
from signer.payment_routes import limits_of, open_sealed
from signer.signing_attempt import SigningAttempt
from signer.together import settle

log = logger(__name__)
_READ = "SELECT * FROM pay_read($1, $2, $3)"
_EXCHANGE = "SELECT exchange_charge($1, $2, $3, $4)"
_ENDED = "SELECT status_detail FROM transactions WHERE tenant_id = $1 AND id = $2 AND status = 'rejected'"


async def pay(signer: Signer, message: PayForRoute, call: Call[ProvenAgent]) -> Answered[RoutePaid | Queued | Refused]:
    """Pay by the first offer that the route allows, if the agent's rules do."""
    ref, request = AgentRef(call.caller.tenant, call.caller.agent), message.request
    limits = limits_of(await _route(signer, message, call.caller))
    demand = read_object(message.demand)
    allowed = Allowed(limits.schemes, frozenset(limits.max_per_call))
    terms = None if demand is None else choose(demand, signer.chains, allowed)
    if demand is None or terms is None:
        raise OfferUnpayable
    order = order_of(demand, terms, method=request.method, host=request.host, path=request.path)
    kind = signer.kinds.of(order)
    inputs = Inputs(signer.chains, unique=signer.unique_of(ref.tenant, message.tx_id), limits=limits)

    def attempt() -> SigningAttempt:
        draft = kind.check(order, inputs)
        return SigningAttempt(ref=ref, tx_id=message.tx_id, kind=kind, draft=draft, call=call, way=Direct(signer))

    answered = await settle(signer, ref, attempt, may_be_taken_along=kind.second_reader is None)
    outcome = answered.answer
    if answered.replayed and isinstance(outcome, Queued):
        outcome = await _end_of(signer, ref.tenant, outcome)
    answer = _answer_of(outcome)
    if isinstance(answer, RoutePaid) and message.charge is not None:
        await _exchange(signer, ref, message.charge, answer.tx_id)
    return Answered(answer, answered.replayed)


async def _exchange(signer: Signer, ref: AgentRef, charge: str, tx_id: str) -> None:
    """Give back what the call was charged: it charges what it pays. Whatever fails here leaves too much charged."""
    try:
        async with signer.pool.acquire() as connection:
            await connection.fetchval(_EXCHANGE, ref.tenant, ref.agent, charge, tx_id)
    except (*DatabaseAway, asyncpg.PostgresError):
        log.warning("a paid call stays charged", extra={"tenant": ref.tenant, "call": charge})


async def _end_of(signer: Signer, tenant: str, queued: Queued) -> Queued | Refused:
    """Find what became of a payment that waited for a person: one that was denied or withdrawn waits no more."""
    async with tenant_scope(signer.pool, tenant) as connection:
        row = await connection.fetchrow(_ENDED, tenant, queued.tx_id)
    if row is None:
        return queued
    return Refused(
        queued.tx_id, queued.results, f"Nobody approved this payment, and nobody will: {row['status_detail']}."
    )


async def _route(signer: Signer, message: PayForRoute, caller: ProvenAgent) -> PaymentRouteFields:
    """The route as it was sealed, if it is for this request of the agent now."""
    route, request = message.route, message.request
    row: Any = await signer.pool.fetchrow(_READ, caller.tenant, caller.agent, route)
    if row is None:
        raise BadProof
    if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
        raise TokenRevoked
    if row["frozen"]:
        raise Frozen("The agent or its tenant is frozen; nothing is paid until it is unfrozen.")
    if row["fields"] is None:
        raise PaymentRouteAbsent
    said = open_sealed(signer.sealer, caller.tenant, route, (row["fields"], row["mac"]))
    target = parse_target(request.host, request.path, addresses=True)
    if not place_covers(said, target, request.method, caller.agent):
        raise PaymentRouteAbsent
    return said


def _answer_of(outcome: object) -> RoutePaid | Queued | Refused:
    if isinstance(outcome, Queued | Refused):
        return outcome
    if isinstance(outcome, NeedsPreparation):
        # On Solana, where the server gives no recent blockhash: the signer asks no node.
        raise OfferUnpayable
    if not isinstance(outcome, Signed) or outcome.payment is None:
        raise TypeError(f"a payment was answered with {type(outcome).__name__}")
    made = outcome.payment
    if made.until <= clock.now().timestamp():
        raise PaymentExpired
    return RoutePaid(outcome.tx_id, made.header, made.value, made.amount, made.asset)
