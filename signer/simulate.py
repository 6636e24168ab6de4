"""The trial of signing an order: the same draft, build and verdict, and nothing written.

No key is opened, no rate counted, no nonce taken. Everything that refuses an order before a policy judges it refuses
the question too, with the same error.
"""

from functools import partial

import msgspec

from custody.kit import ids
from custody.kit.errors import Forbidden
from custody.kit.refs import AgentRef
from custody.policies.budgets import Budget
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.simulation import Fee, Foreseen, Remaining, Simulate
from custody.worker.agent_queues import SIMULATED, TooManyWaiting
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenTenant
from signer import ledger
from signer.context import Signer
from signer.decide import OPTIMISTIC_TRIES, read_on
from signer.direct import Direct
from signer.evaluate import admit, evaluate_policies
from signer.orders import second_reader
from signer.orders.kind import Inputs, NeedsNode
from signer.record import show
from signer.signing_attempt import Judged, SigningAttempt


async def simulate(signer: Signer, message: Simulate, call: Call[ProvenAgent] | Call[ProvenTenant]) -> Foreseen:
    """Judge an order as signing would right now; an approval's later judgement may differ, as facts will."""
    if isinstance(call.caller, ProvenAgent) and call.caller.agent != message.agent:
        raise Forbidden("An agent may simulate only its own orders.", code="other_agent")
    ref = AgentRef(call.caller.tenant, message.agent)
    try:
        # A separate queue: a simulation delays no order of the agent.
        async with signer.queues.turn_of(ref.tenant, SIMULATED + ref.agent):
            order = message.question.request
            kind = signer.kinds.of(order)
            draft = await signer.throttle.run(
                ref.tenant, ref.agent, partial(kind.check, order, Inputs(signer.chains, message.prepared))
            )
            await second_reader.confirm(signer, ref, kind, draft)
            # Without the key of the request: what was asked under it is no order.
            attempt = SigningAttempt(
                ref=ref,
                tx_id=ids.new_uuid(),
                kind=kind,
                draft=draft,
                call=msgspec.structs.replace(call, key=None),
                way=Direct(signer),
                answers=None,
            )
            judged = await _judge(signer, attempt)
    except TooManyWaiting:
        raise Busy from None
    return _foresee(judged)


async def _judge(signer: Signer, attempt: SigningAttempt) -> Judged:
    for _ in range(OPTIMISTIC_TRIES):
        async with signer.pool.acquire() as connection:
            facts, quorum = await read_on(signer, connection, attempt)
        judged = evaluate_policies(signer, attempt, admit(attempt, facts)[0], quorum, locked=False)
        if judged is not None:
            return judged
    # The policies keep changing, or are not what was sealed: the lock tells which, as it does when signing.
    async with signer.pool.acquire() as connection, connection.transaction():
        await ledger.lock(connection, attempt.ref)
        facts, quorum = await read_on(signer, connection, attempt)
    judged = evaluate_policies(signer, attempt, admit(attempt, facts)[0], quorum, locked=True)
    assert judged is not None  # noqa: S101 - under the lock it raises instead
    return judged


def _foresee(judged: Judged) -> Foreseen:
    attempt, decoded, verdict = judged.attempt, judged.decoded, judged.verdict
    needs_node = False
    if verdict.decision == "sign":
        try:
            # The nonce is chosen last, and may still refuse.
            attempt.kind.finish(attempt.draft, decoded, judged.facts)
        except NeedsNode:
            needs_node = True
    return Foreseen(
        decision=verdict.decision,
        results=list(verdict.results),
        effects=[show(effect) for effect in decoded.subject.effects],
        fee=Fee(decoded.fee.asset, str(decoded.fee.amount)) if decoded.fee and decoded.fee.asset else None,
        budgets=[_remaining(budget) for budget in judged.budgets],
        broadcast=attempt.draft.broadcast,
        needs_node=needs_node,
    )


def _remaining(budget: Budget) -> Remaining:
    return Remaining(
        policy_id=budget.policy_id,
        window=budget.window,
        asset=budget.asset,
        limit=budget.limit,
        spent=budget.before,
        remaining=str(max(0, int(budget.limit) - int(budget.before))),
    )
