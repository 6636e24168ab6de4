"""A person's decision over one agent's queued order."""

from api.areas.signing import approvals
from api.areas.signing.approvals import NotApproved
from api.http.bodies import MAX_VOTE_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import APPROVE, DENY
from custody.approvals.types import ApproveBody, ApprovedTransaction, DenyBody, RejectedTransaction
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import Conflict, Frozen, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.orders import Approve, Deny
from custody.protocol.signer.refusals import ApprovalAbsent

routes = Routes("/vault", tag="Approvals")
FAILS = (ApprovalAbsent, Conflict, Frozen, UpstreamFailed)


@routes.post("/<agent>/approve/<tx_id>", max_body=MAX_VOTE_BODY, who=asking(Approve), fails=APPROVE)
async def approve_transaction(
    ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: ApproveBody
) -> Answered[ApprovedTransaction | NotApproved]:
    """Approve a queued transaction: it is judged again by today's policy, signed, and broadcast if the agent asked."""
    return await approvals.approve_transaction(ports, caller, agent, tx_id, body)


@routes.post("/<agent>/reject/<tx_id>", who=asking(Deny), fails=DENY)
async def reject_transaction(
    ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: DenyBody
) -> Answered[RejectedTransaction]:
    """Reject a queued transaction; it can never be signed afterwards."""
    return await approvals.reject_transaction(ports, caller, agent, tx_id, body)
