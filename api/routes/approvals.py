"""The tenant's approval queue. Spec 1/4.7."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import tenant_decide, tenant_read
from api.routes.vault.decisions import FAILS
from custody.approvals import store
from custody.approvals.types import Approval, ApprovalQuery, ApprovalStats, ApproveBody, Approved, Denied, DenyBody
from custody.kit.callers import TenantCaller
from custody.kit.errors import Conflict
from custody.ports import Ports
from custody.signing import decide
from custody.signing.decide import ApprovalAbsent
from custody.signing.types import PolicyRefused

routes = Routes("/approvals", tag="Approvals")


@routes.get("", who=tenant_read, returns={200: list[Approval]})
async def list_all(ports: Ports, caller: TenantCaller, query: ApprovalQuery) -> Any:
    """List the queue, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/stats", who=tenant_read, returns={200: ApprovalStats})
async def stats(ports: Ports, caller: TenantCaller) -> Any:
    """Count the queue over all agents."""
    return await store.stats(ports.pool, caller.tenant)


@routes.post("/<approval_id>/approve", who=tenant_decide(), returns={200: Approved, 403: PolicyRefused}, fails=FAILS)
async def approve(ports: Ports, caller: TenantCaller, approval_id: str, body: ApproveBody) -> Any:
    """Approve an item: it is judged again by today's policy, signed, and broadcast if the agent asked."""
    return await decide.approve(ports, caller, approval_id, body)


@routes.post("/<approval_id>/deny", who=tenant_decide(), returns={200: Denied}, fails=(ApprovalAbsent, Conflict))
async def deny(ports: Ports, caller: TenantCaller, approval_id: str, body: DenyBody) -> Any:
    """Deny an item; its transaction can never be signed afterwards."""
    return await decide.deny(ports, caller, approval_id, body)
