"""Registration at an app client: people who sign in at its page here become members, where the client says so.

Their role is always `member`, which reads nothing of the tenant, so no client hands out a role of the team. The
client's own figure keeps strangers from filling the tenant: a wallet costs nothing, and is a person.
"""

from typing import Any

import msgspec

from custody.identity.app_clients import AppClient
from custody.kit import clock, quotas
from custody.kit.callers import Origin
from custody.protocol.identity.refusals import UnknownAppClient
from custody.worker.acts import enter
from custody.worker.audited import vet
from identity.administration import app_clients
from identity.context import Identity
from identity.people import members, persons

_REGISTERED = "SELECT count(*) FROM memberships WHERE tenant_id = $1 AND role = 'member'"
_AUDIT = "SELECT audit_append('user', $1, $2, 'user', $3, $4, $5)"


async def find_or_make(  # noqa: PLR0913 - a proven identity, and where it signs in
    connection: Any, identity: Identity, origin: Origin, kind: str, subject: str, *, tenant: str | None, app: str | None
) -> str:
    """The user behind a proven identity, made if there is none; at an app client that registers people a member too."""
    if app is None:
        return await persons.find_or_make(connection, identity, kind, subject)
    client = await find(connection, identity, tenant, app)
    user = await persons.find_or_make(connection, identity, kind, subject, newcomers=client.allow_registration)
    await admit(connection, identity, origin, user, tenant=tenant, app=app)
    return user


async def find(connection: Any, identity: Identity, tenant: str | None, app: str) -> AppClient:
    """The enabled app client of that id; the transaction goes on in its tenant."""
    if tenant is None:
        raise UnknownAppClient
    await enter(connection, tenant)
    found = (await app_clients.load(connection, identity, tenant)).get(app)
    if found is None or not found.enabled:
        raise UnknownAppClient
    return found


async def admit(
    connection: Any, identity: Identity, origin: Origin, user: str, *, tenant: str | None, app: str | None
) -> None:
    """Make a person a member of the tenant of the app client, if they are none and it registers people.

    Call it before the person's row is locked: what makes members takes the locks in this order.
    """
    if app is None:
        return
    client = await find(connection, identity, tenant, app)
    assert tenant is not None  # noqa: S101 - there is no client without one
    if not client.allow_registration or await members.hold(connection, tenant, user) is not None:
        return
    await members.demand_room(connection, identity, tenant)
    quotas.check("members", await connection.fetchval(_REGISTERED, tenant), client.max_registered)
    await members.write(connection, identity, tenant, user, "member", clock.now())
    said = msgspec.json.encode({"role": "member", "clientId": client.id}).decode()
    row = [origin.request_id, origin.ip, origin.user_agent]
    await connection.execute(_AUDIT, f"user:{user}", vet("membership.added"), user, said, row)
