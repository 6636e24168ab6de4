"""People whom the operator names, with the ids of their wallets in the operator's own system.

One of many requests at once makes a person: acts in one tenant wait for its row, acts on one address for the lock of
`persons.find`, and the constraints of the tables refuse what nobody thought of. Decision 0073.
"""

from typing import Any

import msgspec

from custody.identity.addresses import normalised_email
from custody.identity.provisioning import external_id, metadata_text
from custody.kit import clock
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import (
    ExternalIdNeedsTenant,
    ExternalIdSet,
    ExternalIdTaken,
    UserAbsent,
)
from custody.protocol.identity.users import (
    AssignedExternalId,
    AssignExternalId,
    Connected,
    ConnectOrCreateUser,
    CreateUser,
    NamedUser,
)
from custody.worker.acts import operating, operating_in, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people import members, persons
from identity.people.persons import Known

EXTERNAL_ID_MAC = "external-id-mac"
_IS_MEMBER = "SELECT EXISTS (SELECT FROM memberships WHERE tenant_id = $1 AND user_id = $2)"
_JOIN = "INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) VALUES ($1, $2, $3, $4, $5)"
_EXTERNAL_IDS = (
    "SELECT tenant_id, external_id, user_id, mac FROM wallet_external_ids "
    "WHERE tenant_id = $1 AND (external_id = $2 OR user_id = $3) ORDER BY external_id = $2 DESC"
)
_ASSIGN = (
    "INSERT INTO wallet_external_ids (tenant_id, external_id, user_id, mac, created_at) VALUES ($1, $2, $3, $4, $5)"
)
_DESCRIBE = "UPDATE users SET custom_metadata = $2 WHERE id = $1"
_LOCK_USER = "SELECT EXISTS (SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE)"
_SIGNS_IN = "SELECT EXISTS (SELECT FROM identities WHERE user_id = $1)"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's data on a person, checked and in its one spelling."""

    email: str | None
    email_verified: bool
    name: str | None
    metadata: str

    @classmethod
    def of(cls, message: CreateUser | ConnectOrCreateUser) -> "Wanted":
        """Read a message, or raise what is wrong with it."""
        return cls(
            email=normalised_email(message.email) if message.email is not None else None,
            email_verified=message.email_verified,
            name=message.name,
            metadata=metadata_text(message.metadata),
        )


def external_id_content(tenant: str, external: str, user: str) -> bytes:
    """Build what the MAC of an external id is of."""
    return fields(tenant, external, user)


async def create(identity: Identity, message: CreateUser, call: Call[ProvenPlatform]) -> NamedUser:
    """The user of an address; a new one, where there is none."""
    wanted, tenant = Wanted.of(message), message.tenant
    external = external_id(message.external_id) if message.external_id is not None else None
    if tenant is None:
        if external is not None:
            raise ExternalIdNeedsTenant
        async with operating(identity, call) as connection:
            user, is_new = await _find_or_make(connection, identity, call, wanted)
            outcome = NamedUser(user, is_new, None, None)
            await remember(connection, call, outcome)
        return outcome
    async with operating_in(identity, call, tenant) as connection:
        user, is_new = await _find_or_make(connection, identity, call, wanted)
        await _join(connection, identity, call, tenant, user, "member")
        if external is not None:
            await _assign(connection, identity, call, tenant, user, external)
        outcome = NamedUser(user, is_new, tenant, external)
        await remember(connection, call, outcome)
    return outcome


async def assign(identity: Identity, message: AssignExternalId, call: Call[ProvenPlatform]) -> AssignedExternalId:
    """Give a user an external id in a tenant, whose member they are from then on; the same again changes nothing."""
    tenant, user, external = message.tenant, message.user, external_id(message.external_id)
    outcome = AssignedExternalId(user, tenant, external)
    async with operating_in(identity, call, tenant) as connection:
        if not await connection.fetchval(_LOCK_USER, user):
            raise UserAbsent
        await _join(connection, identity, call, tenant, user, "member")
        await _assign(connection, identity, call, tenant, user, external)
        await remember(connection, call, outcome)
    return outcome


async def connect_or_create(identity: Identity, message: ConnectOrCreateUser, call: Call[ProvenPlatform]) -> Connected:
    """The user of an external id, who is found by it, found by the address, or made."""
    wanted, tenant, external = Wanted.of(message), message.tenant, external_id(message.external_id)
    async with operating_in(identity, call, tenant) as connection:
        user = await _owner_of(connection, identity, tenant, external)
        if user is not None:
            is_new, assigned = False, False
            await _give_address(connection, identity, call, user, wanted)
        else:
            user, is_new = await _find_or_make(connection, identity, call, wanted)
            assigned = await _assign(connection, identity, call, tenant, user, external)
        await _join(connection, identity, call, tenant, user, message.role)
        outcome = Connected(user, tenant, external, is_new, assigned)
        await remember(connection, call, outcome)
    return outcome


async def _find_or_make(
    connection: Any, identity: Identity, call: Call[ProvenPlatform], wanted: Wanted
) -> tuple[str, bool]:
    """The person of the address, as they are, or a new one; without an address always a new one."""
    found = await persons.find(connection, identity, "email", wanted.email) if wanted.email is not None else None
    if found is not None:
        return found.user, False
    user = await persons.make(connection, name=wanted.name)
    if wanted.metadata != "{}":
        await connection.execute(_DESCRIBE, user, wanted.metadata)
    if wanted.email is not None:
        await _add_address(connection, identity, user, wanted.email, verified=wanted.email_verified)
    await tell(connection, call, "user.created", "user", user, emailVerified=wanted.email_verified)
    return user, True


async def _give_address(
    connection: Any, identity: Identity, call: Call[ProvenPlatform], user: str, wanted: Wanted
) -> None:
    """Let somebody sign in who cannot yet; ExternalIdTaken where the address is another person's."""
    if wanted.email is None:
        return
    found = await persons.find(connection, identity, "email", wanted.email)
    if found is not None:
        if found.user != user:
            raise ExternalIdTaken
        return
    await connection.fetchval(_LOCK_USER, user)
    if not await connection.fetchval(_SIGNS_IN, user):
        await _add_address(connection, identity, user, wanted.email, verified=wanted.email_verified)
        await tell(connection, call, "user.email_added", "user", user, emailVerified=wanted.email_verified)


async def _add_address(connection: Any, identity: Identity, user: str, email: str, *, verified: bool) -> None:
    await persons.add_identity(connection, identity, Known(kind="email", subject=email, user=user, verified=verified))


async def _join(
    connection: Any, identity: Identity, call: Call[ProvenPlatform], tenant: str, user: str, role: Role
) -> None:
    """Make a member of somebody who is none; a membership that is there keeps its role."""
    if await connection.fetchval(_IS_MEMBER, tenant, user):
        return
    await members.demand_room(connection, identity, tenant)
    since = clock.now()
    mac = persons.membership_mac(identity, tenant, user, role, since)
    await connection.execute(_JOIN, tenant, user, role, mac, since)
    await tell(connection, call, "membership.added", "user", user, role=role)


async def _owner_of(connection: Any, identity: Identity, tenant: str, external: str) -> str | None:
    for row in await connection.fetch(_EXTERNAL_IDS, tenant, external, None):
        _check(identity, row)
        return str(row["user_id"])
    return None


async def _assign(
    connection: Any, identity: Identity, call: Call[ProvenPlatform], tenant: str, user: str, external: str
) -> bool:
    """Give the user the id: True if it is new, False if it was theirs; it never moves and never changes."""
    for row in await connection.fetch(_EXTERNAL_IDS, tenant, external, user):
        _check(identity, row)
        if str(row["user_id"]) != user:
            raise ExternalIdTaken
        if row["external_id"] != external:
            raise ExternalIdSet
        return False
    mac = identity.sealer.mac(EXTERNAL_ID_MAC, tenant, external_id_content(tenant, external, user))
    await connection.execute(_ASSIGN, tenant, external, user, mac, clock.now())
    await tell(connection, call, "user.external_id_assigned", "user", user, walletExternalId=external)
    return True


def _check(identity: Identity, row: Any) -> None:
    content = external_id_content(row["tenant_id"], row["external_id"], str(row["user_id"]))
    identity.sealer.check_mac(row["mac"], EXTERNAL_ID_MAC, row["tenant_id"], content)
