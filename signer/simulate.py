"""What signing an order would come to: the same draft, build and verdict, and nothing written. Decisions 10.

No key is opened, no rate counted, no nonce taken. Everything that refuses an order before a policy judges it refuses
the question too, with the same error.
"""

from typing import Any

import msgspec

from custody.chains.orders import EvmQuestion
from custody.kit import ids
from custody.kit.errors import Forbidden
from custody.kit.refs import AgentRef
from custody.policies.budgets import Budget
from custody.protocol.messages import Done, Simulate
from custody.transactions import ledger
from signer import orders
from signer.case import Case
from signer.consider import admit, weigh
from signer.context import Ask, Signer
from signer.decide import OPTIMISTIC_TRIES, Busy, question_of
from signer.draft import NeedsNode
from signer.proofs import ProvenAgent, ProvenTenant
from signer.record import Judged, shown
from signer.turns import SIMULATED, TooManyWaiting


async def simulate(signer: Signer, message: Simulate, ask: Ask[ProvenAgent] | Ask[ProvenTenant]) -> Done:
    """Judge an order as signing would right now; an approval's later judgement may differ, as facts will."""
    if isinstance(ask.caller, ProvenAgent) and ask.caller.agent != message.agent:
        raise Forbidden("An agent asks only about its own wallet.", code="other_agent")
    ref = AgentRef(ask.caller.tenant, message.agent)
    try:
        # A queue of its own: whoever only asks keeps no order of the agent waiting.
        async with signer.turns.turn_of(ref.tenant, SIMULATED + ref.agent):
            prepared = message.evm if isinstance(message.question, EvmQuestion) else message.solana
            draft = orders.draft(message.question.request, prepared, signer.chains)
            # Without the key of the request: what was asked under it is no order.
            case = Case(ref=ref, tx_id=ids.new_uuid(), draft=draft, ask=msgspec.structs.replace(ask, key=None))
            judged = await _judged(signer, case)
    except TooManyWaiting:
        raise Busy from None
    return Done(_told(judged))


async def _judged(signer: Signer, case: Case) -> Judged:
    for _ in range(OPTIMISTIC_TRIES):
        async with signer.pool.acquire() as connection:
            facts = await ledger.read(connection, question_of(case))
        judged = weigh(signer, case, admit(case, facts)[0], locked=False)
        if judged is not None:
            return judged
    # The policies keep changing, or are not what was sealed: the lock tells which, as it does when signing.
    async with signer.pool.acquire() as connection, connection.transaction():
        await ledger.lock(connection, case.ref)
        facts = await ledger.read(connection, question_of(case))
    judged = weigh(signer, case, admit(case, facts)[0], locked=True)
    assert judged is not None  # noqa: S101 - under the lock it raises instead
    return judged


def _told(judged: Judged) -> dict[str, Any]:
    built, verdict = judged.built, judged.verdict
    needs_node = False
    if verdict.decision == "sign":
        try:
            # The nonce is chosen last, and may still refuse.
            built.finish()
        except NeedsNode:
            needs_node = True
    return {
        "decision": verdict.decision, "results": list(verdict.results),
        "effects": [shown(effect) for effect in built.subject.effects],
        "fee": {"asset": built.fee.asset, "max": str(built.fee.amount)} if built.fee else None,
        "budgets": [_budget(budget) for budget in judged.budgets], "broadcast": built.broadcast,
        "needsNode": needs_node,
    }  # fmt: skip


def _budget(budget: Budget) -> dict[str, str]:
    remaining = max(0, int(budget.limit) - int(budget.before))
    return {
        "policyId": budget.policy_id, "window": budget.window, "asset": budget.asset, "limit": budget.limit,
        "spent": budget.before, "remaining": str(remaining),
    }  # fmt: skip
