"""Short words for invitations, and rows of them as identity itself would have written them."""

import datetime as dt
from typing import Any

import asyncpg
import httpx

from identity.people.invitations import INVITATION_MAC, content_of
from tests.fixtures.callers import Client, Tenant, platform_client
from tests.fixtures.forgery import identity_sealer_of
from tests.fixtures.people import Person, fresh_address
from tests.fixtures.server import Service


def path_of(tenant: Tenant | str, *rest: str) -> str:
    tenant_id = tenant if isinstance(tenant, str) else tenant.id
    return "/".join([f"/platform/tenants/{tenant_id}/invitations", *rest])


def invite(service: Service, tenant: Tenant | str, email: str | None = None, **more: Any) -> dict[str, Any]:
    """An invitation with its token."""
    with platform_client(service) as platform:
        made: dict[str, Any] = platform.ok(
            "POST", path_of(tenant), {"email": email or fresh_address(), "role": "viewer", **more}
        )
    return made


def accept(person: Client, tenant: Tenant | str, token: str | None = None, **headers: str) -> httpx.Response:
    tenant_id = tenant if isinstance(tenant, str) else tenant.id
    body = {"token": token} if token is not None else {}
    return person.post(f"/user/me/tenants/{tenant_id}/invitations/accept", json=body, headers=headers)


def states(service: Service, tenant: Tenant) -> list[tuple[str, str]]:
    """Address and state of each invitation, the newest first."""
    with platform_client(service) as platform:
        found = platform.ok("GET", path_of(tenant))["invitations"]
    return [(one["email"], one["status"]) for one in found]


def role_in(person: Person, tenant: Tenant) -> str | None:
    """Return a person's role in a tenant."""
    known = {one["tenantId"]: one["role"] for one in person.ok("GET", "/auth/session")["memberships"]}
    return known.get(tenant.id)


async def let_expire(service: Service, owner: asyncpg.Connection, invitation: str) -> None:
    """As if its time were up, by identity's own hand."""
    row = dict(await owner.fetchrow("SELECT * FROM invitations WHERE id = $1", invitation))
    row["expires_at"] = row["created_at"] - dt.timedelta(seconds=1)
    mac = identity_sealer_of(service).mac(INVITATION_MAC, row["tenant_id"], content_of(row))
    change = "UPDATE invitations SET expires_at = $2, mac = $3 WHERE id = $1"
    await owner.execute(change, invitation, row["expires_at"], mac)
