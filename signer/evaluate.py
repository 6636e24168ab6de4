"""Everything between the read and the write: who asks, what the policies say, the signature. No waiting, no I/O.

What comes out is not released here: it becomes true, and may leave, with the write.
"""

from typing import Any

import msgspec

from custody.chains.evm.family import EVM_NATIVE, coin_of
from custody.kit import clock, ids
from custody.kit.answers import Answered
from custody.kit.errors import Frozen
from custody.kit.logs import logger
from custody.policies.dollars import worth_of
from custody.policies.fleet import judge_all
from custody.policies.parts import names
from custody.policies.quorum import enabled_quorums, without_quorums
from custody.policies.types import MOST_CHECKS, CheckQuestion, Spend
from custody.policies.types import Facts as JudgedFacts
from custody.protocol.refusals import BadProof, IdempotencyMismatch, TokenRevoked
from custody.protocol.signer.order_refusals import AgentAbsent, AuthorityTampered, KeyTampered, PolicyTampered
from custody.protocol.signer.outcomes import NeedsChecks, NeedsPreparation, Queued, Refused, Signed
from custody.worker.judging import Judging
from custody.worker.proven import ProvenAgent
from custody.worker.sealing import Context, Tampered
from signer import bitcoin_seals, broken_quorums, ed25519, ledger, record
from signer.ledger import Facts
from signer.orders.kind import Final, NeedsNode, taken_over
from signer.rollback_journal import RolledBack
from signer.set_seals import spent_together
from signer.signing_attempt import Judged, Outcome, SigningAttempt, Step, Tally, ToWrite, decode_outcome
from signer.signing_state import SigningState
from signer.statements import APPROVAL_MAC, approval_content

log = logger(__name__)


def evaluate(
    signer: SigningState,
    attempt: SigningAttempt,
    facts: Facts | None,
    quorum: broken_quorums.Read | None,
    *,
    locked: bool,
) -> Step | None:
    """Everything between the read and the write: no waiting, no I/O, nothing released.

    None: the policies do not hang together. Without the row's lock that is mostly a change that was just being
    committed, so it is read again; under the lock it is tampering.
    """
    # Once more: the database may have gone back since the request came in.
    signer.serve(attempt.ref.tenant)
    facts, earlier = admit(attempt, facts)
    if earlier is not None:
        return Answered(earlier, replayed=True)
    if attempt.problem is not None:
        raise attempt.problem
    if attempt.claim is None and facts.action is None:
        signer.quotas.need_room(attempt.ref.tenant)
    judged = evaluate_policies(signer, attempt, facts, quorum, locked=locked)
    if judged is None:
        return None
    if facts.action is not None:
        # Only now: the signers of the request were looked at. No rule decides again what was decided before.
        return Answered(attempt.way.answer_under_reference(attempt, *facts.action), replayed=True)
    if attempt.answers is None and judged.verdict.decision != "refuse" and (asked := _questions(judged)):
        return Answered(NeedsChecks(asked))
    if judged.verdict.decision == "sign":
        return attempt.way.sign(judged)
    return attempt.way.queue(judged) if judged.verdict.decision == "queue" else attempt.way.refuse(judged)


def evaluate_policies(
    signer: SigningState, attempt: SigningAttempt, facts: Facts, quorum: broken_quorums.Read | None, *, locked: bool
) -> Judged | None:
    """Judge an order by the policies, whether it is signed then or only asked about; None as above.

    `quorum` was read where the rules may ask for votes.
    """
    try:
        rules = signer.policies.open(
            attempt.ref.tenant, attempt.ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        rules = signer.sets.of_agent(attempt.ref.tenant, rules, facts.sets)
        judging = signer.judging.open(attempt.ref.tenant, facts.config_version, facts.judging, facts.judging_mac)
    except (Tampered, RolledBack) as problem:
        if not locked:
            return None
        log.error(
            "policies refused",
            extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent, "reason": type(problem).__name__},
        )
        raise PolicyTampered from None
    if not facts.address and not attempt.kind.keys.made_when_asked:
        # Its row is gone; an agent always has a wallet of each family.
        log.error("wallet absent", extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent})
        raise KeyTampered
    try:
        authorization = attempt.way.authorize(attempt, facts, judging)
    except (Tampered, RolledBack, msgspec.MsgspecError, ValueError, TypeError) as problem:
        if not locked:
            return None
        log.error(
            "signers refused",
            extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent, "reason": type(problem).__name__},
        )
        raise AuthorityTampered from None
    if facts.psbt is not None:
        psbt, name = facts.psbt, attempt.draft.psbt.account if attempt.draft.psbt else ""
        bitcoin_seals.check(signer.sealer, attempt.ref, facts.incarnation, name, psbt)
    if attempt.draft.ends is not None and attempt.draft.ends <= facts.now.timestamp():
        # A dead signature would be counted all the same.
        attempt.way.refuse_ended()
    decoded = attempt.kind.effects(attempt.draft, facts)
    ref = attempt.ref.tenant, attempt.ref.agent, facts.incarnation
    if quorum is not None and broken_quorums.is_broken(signer, ref, facts.policy_version, quorum.broken, facts.now):
        # The hash stays that of the set as it is stored.
        rules = msgspec.structs.replace(rules, rules=without_quorums(rules.rules))
    tally = attempt.way.count_votes(attempt, facts, enabled_quorums(rules.rules), quorum)
    worth = worth_of(decoded.subject, signer.prices(facts.now), signer.chains.units)
    against = _judged_facts(signer, attempt, facts, judging, tally, worth)
    named, said = ((), None) if authorization is None else (authorization.policy_ids, authorization.text)
    verdict = judge_all(rules.rules, decoded.subject, against, named)
    return Judged(attempt, facts, decoded, verdict, rules, against, judging.auto_expire_seconds, tally, said)


def admit(attempt: SigningAttempt, facts: Facts | None) -> tuple[Facts, Outcome | None]:
    """Is this caller still who it was, is the agent free to act, was this asked before?"""
    caller = attempt.call.caller
    if facts is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (facts.incarnation, facts.token_epoch):
        raise TokenRevoked
    if attempt.call.key is not None and facts.idempotent is not None:
        fingerprint, answer = facts.idempotent
        if fingerprint != attempt.call.key.fingerprint:
            raise IdempotencyMismatch
        if answer is not None:
            return facts, decode_outcome(answer)
    if facts.frozen:
        raise Frozen
    return facts, None


def _judged_facts(
    signer: SigningState,
    attempt: SigningAttempt,
    facts: Facts,
    judging: Judging,
    tally: Tally | None,
    worth: dict[str, int],
) -> JudgedFacts:
    """The ledger's figures as the judge sees them: a slot that is taken over does not count twice."""
    spend = {asset: Spend(*sums) for asset, sums in facts.spend.items()}
    floor: dict[str, int] = {}
    for asset, charge in record.counted_before(attempt, facts).items():
        amount = int(charge.amount)
        # The same edges as the statement that summed: a bucket counts while any of its hour is in the window.
        day, week = (record.in_window(facts.now, charge.hour, hours=hours) for hours in (24, 168))
        for name in names(asset):
            floor[name] = floor.get(name, 0) + amount
            known = spend.get(name, Spend(0, 0))
            spend[name] = Spend(known.day - amount * day, known.week - amount * week, known.total - amount)
    wanted, slot = attempt.draft.nonce, taken_over(attempt.draft, facts.slot)
    if wanted is not None and slot is not None and EVM_NATIVE in slot.charges:
        # Counted before the coins of chains were: it is in no sum of this chain's, and the slot is of this chain.
        coin = coin_of(wanted.chain_id)
        floor[coin] = floor.get(coin, 0) + int(slot.charges[EVM_NATIVE].amount)
    claim = attempt.claim
    # A queued order was counted when it was queued; being approved it does not count against itself.
    in_hour, in_day = record.counted_rates(facts.now, claim.requested_at) if claim else (False, False)
    # Of a batch all but one count as if they were there.
    others = attempt.draft.orders - 1
    return JudgedFacts(
        now=facts.now,
        spend=spend,
        floor=floor,
        worth=worth,
        orders_last_hour=sum(orders for _, orders in facts.minutes) - in_hour + others,
        orders_last_day=sum(orders for _, orders in facts.hours) - in_day + others,
        minutes=facts.minutes,
        hours=facts.hours,
        empty_policy=signer.empty_policy,
        uncovered=judging.uncovered_effects,
        units=signer.chains.units,
        shared=spent_together(facts.sets),
        approving=attempt.way.is_approved,
        votes=tally.votes if tally is not None else frozenset(),
        recipients=facts.recipients,
        waited=record.count_waited(attempt, facts.now),
        order=(attempt.ref.tenant, attempt.ref.agent, attempt.tx_id),
        answers=attempt.answers,
        verify=ed25519.verify,
    )


def _questions(judged: Judged) -> list[CheckQuestion]:
    """The questions that services are to be asked about an order that no rule refuses."""
    asks = [rule.terms for rule in judged.rules.rules if rule.enabled]
    found = [asked for terms in asks if (asked := terms.question(judged.decoded.subject, judged.against)) is not None]
    return found[:MOST_CHECKS]


def sign(signer: SigningState, judged: Judged) -> Step:
    """Sign in memory what the rules let be signed; an answer where it cannot be broadcast without a node's word."""
    attempt, facts = judged.attempt, judged.facts
    try:
        final: Final = attempt.kind.finish(attempt.draft, judged.decoded, facts)
    except NeedsNode:
        return Answered(NeedsPreparation())
    made, outcome = sign_one(signer, judged, final, open_key(signer, attempt, facts))
    return ToWrite(facts, made, outcome, judged.tally)


def sign_one(signer: SigningState, judged: Judged, final: Final, key: Any) -> tuple[ledger.Record, Signed]:
    """Sign one transaction; give its record and what the caller will get."""
    produced = judged.attempt.kind.sign(final, key)
    outcome = record.signed_outcome(judged, produced)
    made = record.of_signed(judged, final, produced, outcome, signer.statement_keys.of("receipt").mac)
    for more in signer.rule_facts:
        made = more.note(judged, made)
    return made, outcome


def open_key(signer: SigningState, attempt: SigningAttempt, facts: Facts) -> Any:
    """The key, opened, once it is sure to be this wallet's."""
    keys = attempt.kind.keys
    try:
        secret = signer.sealer.open(
            facts.blob or b"", Context(attempt.ref.tenant, "agent", attempt.ref.agent, keys.family, facts.incarnation)
        )
        key = keys.open(secret)
        if keys.address(key) != facts.address:
            raise Tampered
    except (Tampered, ValueError):
        log.error("key refused", extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent})
        raise KeyTampered from None
    return key


def queue(signer: SigningState, judged: Judged) -> ToWrite:
    """Have an order wait for a person."""
    attempt, verdict = judged.attempt, judged.verdict
    times = record.release_times(judged, signer.delay_of(judged))
    released = clock.iso(times[1]) if times else None
    outcome = Queued(attempt.tx_id, ids.new_uuid(), list(verdict.results), record.why(verdict), released)
    content = approval_content(
        attempt.ref.tenant,
        attempt.ref.agent,
        judged.facts.incarnation,
        attempt.tx_id,
        outcome.approval_id,
        attempt.draft.digest,
        judged.authorization,
        times,
    )
    mac = signer.sealer.mac(APPROVAL_MAC, attempt.ref.tenant, content)
    return ToWrite(judged.facts, record.of_queued(judged, outcome, mac, times), outcome)


def refuse(signer: SigningState, judged: Judged) -> ToWrite:
    """Refuse an order, and remember that it was tried."""
    verdict = judged.verdict
    outcome = Refused(judged.attempt.tx_id, list(verdict.results), record.why(verdict), verdict.room)
    made = record.of_refused(judged, outcome)
    for more in signer.rule_facts:
        made = more.note(judged, made)
    return ToWrite(judged.facts, made, outcome)
