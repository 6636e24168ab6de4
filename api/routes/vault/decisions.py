"""The decision over one agent's queued order: a person's, or the agent's own to take it back."""

from api.areas.signing import approvals
from api.areas.signing.approvals import NotApproved
from api.http.bodies import MAX_VOTE_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import QUEUED
from custody.approvals.types import ApproveBody, ApprovedTransaction, DenyBody, RejectedTransaction
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.orders import Approve, Deny, Withdraw, Withdrawn

routes = Routes("/vault", tag="Approvals")


@routes.post("/<agent>/approve/<tx_id>", max_body=MAX_VOTE_BODY, who=asking(Approve), fails=QUEUED)
async def approve_transaction(
    ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: ApproveBody
) -> Answered[ApprovedTransaction | NotApproved]:
    """Approve a queued transaction: it is judged again by today's policy, signed, and broadcast if the agent asked."""
    return await approvals.approve_transaction(ports, caller, agent, tx_id, body)


@routes.post("/<agent>/reject/<tx_id>", who=asking(Deny))
async def reject_transaction(
    ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: DenyBody
) -> Answered[RejectedTransaction]:
    """Reject a queued transaction; it can never be signed afterwards."""
    return await approvals.reject_transaction(ports, caller, agent, tx_id, body)


@routes.post("/<agent>/transactions/<tx_id>/withdraw", who=asking(Withdraw))
async def withdraw_transaction(ports: Ports, caller: AgentCaller, agent: AgentRef, tx_id: str) -> Answered[Withdrawn]:
    """Withdraw a queued transaction of the agent's own; it can never be signed afterwards.

    Of a withdrawal and an approval at once exactly one happens. A batch of calls waits as an intent, which people end.
    """
    return await ports.workers.ask(Withdraw(agent.agent, tx_id), caller)
