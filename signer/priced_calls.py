"""One priced call on its way: the price as its route seals it, and whether the agent's rules leave room for it.

Like an order without a signature. What comes out counts, and the call may leave, with the write.
"""

import msgspec

from custody.chains.units import USD
from custody.credentials.types import RouteFields
from custody.kit.errors import Frozen
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.policies.calls import CALL, judge_call, room_after
from custody.policies.fleet import shared_charges
from custody.policies.types import Facts as JudgedFacts
from custody.policies.types import Spend
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.calls import BudgetExceeded
from custody.protocol.signer.order_refusals import PolicyTampered
from custody.worker.proven import ProvenAgent
from custody.worker.sealing import Tampered
from signer.ledger import ChargeRow, Facts
from signer.record import hour_of
from signer.rollback_journal import RolledBack
from signer.set_seals import spent_together
from signer.signing_state import SigningState

log = logger(__name__)


class Price(msgspec.Struct, frozen=True):
    """The text of a route, and the MAC under which it said so; the write compares that."""

    fields: RouteFields
    mac: bytes


class PricedCall(msgspec.Struct, frozen=True):
    """A call that somebody wants to make."""

    ref: AgentRef
    caller: ProvenAgent
    id: str
    route: str
    price: Price


def evaluate(signer: SigningState, call: PricedCall, facts: Facts | None, *, locked: bool) -> ChargeRow | None:
    """Everything between the read and the write; raises BudgetExceeded where the rules leave no room.

    None: the policies do not hang together, as `evaluate.evaluate` has it.
    """
    signer.serve(call.ref.tenant)
    if facts is None:
        raise BadProof
    if (call.caller.incarnation, call.caller.epoch) != (facts.incarnation, facts.token_epoch):
        raise TokenRevoked
    if facts.frozen:
        raise Frozen("The agent or its tenant is frozen; no call is charged until it is unfrozen.")
    try:
        own = signer.policies.open(
            call.ref.tenant, call.ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        rules = signer.sets.of_agent(call.ref.tenant, own, facts.sets).rules
    except (Tampered, RolledBack) as problem:
        if not locked:
            return None
        log.error("policies refused", extra={"tenant": call.ref.tenant, "reason": type(problem).__name__})
        raise PolicyTampered from None
    micro_usd = call.price.fields.charge
    judged = JudgedFacts(
        now=facts.now,
        spend={asset: Spend(*sums) for asset, sums in facts.spend.items()},
        empty_policy=signer.empty_policy,
        units=signer.chains.units,
        shared=spent_together(facts.sets),
    )
    verdict = judge_call(rules, micro_usd, judged)
    if verdict.decision != "sign":
        why = next(result.reason for result in verdict.results if not result.passed)
        raise BudgetExceeded(
            f"The agent's rules leave no room for this call: {why}.", retry_after=room_after(rules, micro_usd, judged)
        )
    shared = shared_charges(rules, CALL, {USD: micro_usd})
    return ChargeRow(call.id, call.route, call.price.mac, micro_usd, hour_of(facts.now), shared)
