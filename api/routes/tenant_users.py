"""The people of a tenant, as its owners and admins see them."""

from api.areas.people import look_up
from api.areas.people.user_types import TenantUser, TenantUsersQuery
from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.identity.provisioning import BadExternalId
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed
from custody.ports import Ports

routes = Routes("/user/me/tenants/<tenant_id>/users", tag="Tenant users")


@routes.get("", who=admin_mfa(), fails=(BadExternalId,))
async def list_tenant_users(
    ports: Ports, caller: SessionCaller, tenant_id: str, query: TenantUsersQuery
) -> Listed[TenantUser]:
    """List the people of the tenant, newest member first; with `walletExternalId` only the one whose wallet has it."""
    return await look_up.team_of(ports, caller, query)
