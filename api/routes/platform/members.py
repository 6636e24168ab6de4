"""Members of a tenant, named by the operator."""

from api.areas.tenants import members as use_cases
from api.areas.tenants import store
from api.http.endpoint import Routes
from api.http.who import asking, platform
from custody.identity.scopes import TENANT_USER_READ
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.tenants import Membership, PutMember, RemovedMember, RemoveMember
from custody.protocol.refusals import TenantAbsent
from custody.tenants.types import Member, MemberBody, RemoveMemberBody

routes = Routes("/platform/tenants/<tenant_id>/members", tag="Platform")


@routes.get("", who=platform(TENANT_USER_READ), fails=(TenantAbsent,))
async def list_members(ports: Ports, tenant_id: str, query: Page) -> Listed[Member]:
    """List a tenant's members, newest first."""
    return await store.members(ports.pool, tenant_id, query)


@routes.post("", who=asking(PutMember))
async def put_member(
    ports: Ports, caller: PlatformCaller, tenant_id: str, body: MemberBody
) -> Answered[Created[Membership] | Membership]:
    """Add a user to a tenant, or change a member's role; existing sessions follow at once.

    Another role for the tenant's last owner is 409 `last_owner` unless `force` is true.
    """
    return await use_cases.put(ports, caller, tenant_id, body)


@routes.delete("/<user_id>", who=asking(RemoveMember))
async def remove_member(
    ports: Ports, caller: PlatformCaller, tenant_id: str, user_id: str, body: RemoveMemberBody
) -> Answered[RemovedMember]:
    """Remove a member; their sessions lose access to the tenant at once.

    The tenant's last owner is 409 `last_owner` unless `force` is true: afterwards only the operator can name another.
    """
    return await ports.workers.ask(RemoveMember(tenant_id, user_id, body.force), caller)
