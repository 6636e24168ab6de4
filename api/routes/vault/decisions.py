"""A person's decision over one agent's queued order. Spec 1/4.6."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import tenant_decide
from custody.approvals.types import ApproveBody, ApprovedTransaction, DenyBody, RejectedTransaction
from custody.kit.callers import TenantCaller
from custody.kit.errors import Conflict, Frozen, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.signing import decide
from custody.signing.decide import ApprovalAbsent
from custody.signing.types import PolicyRefused

routes = Routes("/vault", tag="Approvals")
FAILS = (ApprovalAbsent, Conflict, Frozen, UpstreamFailed)


@routes.post(
    "/<agent>/approve/<tx_id>", who=tenant_decide(), returns={200: ApprovedTransaction, 403: PolicyRefused}, fails=FAILS
)
async def approve(ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: ApproveBody) -> Any:
    """Approve a queued transaction: it is judged again by today's policy, signed, and broadcast if the agent asked."""
    return await decide.approve_transaction(ports, caller, agent, tx_id, body)


@routes.post(
    "/<agent>/reject/<tx_id>", who=tenant_decide(), returns={200: RejectedTransaction}, fails=(ApprovalAbsent, Conflict)
)
async def reject(ports: Ports, caller: TenantCaller, agent: AgentRef, tx_id: str, body: DenyBody) -> Any:
    """Reject a queued transaction; it can never be signed afterwards."""
    return await decide.reject_transaction(ports, caller, agent, tx_id, body)
