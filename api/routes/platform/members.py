"""Members of a tenant, named by the operator. Decisions 5."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import USER_WRITE, platform
from custody.kit.callers import PlatformCaller
from custody.kit.errors import NotFound
from custody.kit.paging import Page
from custody.ports import Ports
from custody.tenants import members as stories
from custody.tenants import store
from custody.tenants.types import Member, MemberAbsent, MemberBody, Membership, RemovedMember, TenantAbsent

routes = Routes("/platform/tenants/<tenant_id>/members", tag="Platform")
TENANT_USER_READ = "platform:tenant-user:read"


@routes.get("", who=platform(TENANT_USER_READ), returns={200: list[Member]}, fails=(TenantAbsent,))
async def list_all(ports: Ports, tenant_id: str, query: Page) -> Any:
    """List a tenant's members, newest first."""
    return await store.members(ports.pool, tenant_id, query)


@routes.post("", who=platform(USER_WRITE), returns={201: Membership, 200: Membership}, fails=(NotFound,))
async def put(ports: Ports, caller: PlatformCaller, tenant_id: str, body: MemberBody) -> Any:
    """Make a user a member of a tenant, or give a member another role; sessions feel it at once."""
    return await stories.put(ports, caller, tenant_id, body)


@routes.delete("/<user_id>", who=platform(USER_WRITE), returns={200: RemovedMember}, fails=(MemberAbsent, TenantAbsent))
async def remove(ports: Ports, caller: PlatformCaller, tenant_id: str, user_id: str) -> Any:
    """Remove a member, the last owner too; his sessions no longer reach the tenant."""
    return await stories.remove(ports, caller, tenant_id, user_id)
