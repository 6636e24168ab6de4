"""Tenants: made here with their keys, which are kept as hashes; the signer deletes them."""

import re
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from custody.kit import clock, tokens
from custody.kit.act import Act
from custody.kit.callers import Origin
from custody.kit.quotas import excess
from custody.protocol.identity.refusals import BadApiKey, TenantIdReserved, TenantKeyTaken, TenantTaken
from custody.protocol.identity.tenants import CreateTenant, MadeTenant
from custody.worker.act import act
from custody.worker.acts import demand_platform_key
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proofs import MEMBERSHIP_MAC, TENANT_KEY_MAC, membership_content
from custody.worker.proven import PLATFORM, ProvenPlatform, ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity

WRITE_SCOPE = "platform:tenant:write"
_HASH = re.compile(r"[0-9a-f]{64}")
PERSONAL_PREFIX = "personal-"
PERSONAL_NAME = "Personal"
# Where there is no quota.
_ANY_NUMBER = 2**31 - 1
_CREATE = "SELECT create_tenant($1, $2, $3, $4, $5)"


class NewTenantRow(NamedTuple):
    """A tenant as create_tenant takes it: the SQL type `new_tenant`."""

    id: str
    name: str
    webhook_url: str | None
    key_hash: bytes
    key_prefix: str
    key_mac: bytes
    owner: str | None
    membership_mac: bytes | None
    created_at: datetime


async def create(
    identity: Identity, message: CreateTenant, call: Call[ProvenPlatform] | Call[ProvenSession]
) -> MadeTenant:
    """Make a tenant and its API key; a key that was made here is shown once. A signed-in person becomes its owner."""
    if message.id == PLATFORM or message.id.startswith(PERSONAL_PREFIX):
        raise TenantIdReserved(f"The tenant id {message.id!r} is reserved; choose another.")
    shown, key_hash, prefix = _key_of(message)
    now, caller = clock.now(), call.caller
    outcome = MadeTenant(message.id, message.name, key_hash.hex(), clock.iso(now), shown)
    person = caller if isinstance(caller, ProvenSession) else None
    most = min(identity.limits.people.tenants_per_person or _ANY_NUMBER, _ANY_NUMBER)
    try:
        async with identity.pool.acquire() as connection, connection.transaction():
            if isinstance(caller, ProvenPlatform):
                await demand_platform_key(connection, call)
            result = await connection.fetchval(
                _CREATE,
                person.tenant if person else PLATFORM,
                person.standing if person else None,
                act(call, None if shown else pack(outcome)),
                _new(identity, message, key_hash, prefix, person.user if person else None, now),
                most,
            )
    except asyncpg.UniqueViolationError as problem:
        raise (TenantTaken if problem.constraint_name == "tenants_pkey" else TenantKeyTaken) from None
    if result == "too_many":
        raise excess("tenants_per_person", most, most)
    return outcome


async def make_personal(connection: Any, identity: Identity, tenant: str, user: str, origin: Origin) -> str:
    """A person's own tenant, in the transaction of the first sign-in; its API key, which is shown this once."""
    api_key = tokens.new_api_key("ck")
    key_hash, now = tokens.digest(api_key), clock.now()
    await connection.execute(
        _CREATE,
        PLATFORM,
        None,
        Act(
            f"user:{user}",
            None,
            None,
            None,
            None,
            "system",
            f"user:{user}",
            "{}",
            [origin.request_id, origin.ip, origin.user_agent],
        ),
        _new(identity, CreateTenant(id=tenant, name=PERSONAL_NAME), key_hash, tokens.prefix_of(api_key), user, now),
        _ANY_NUMBER,
    )
    return api_key


def _new(
    identity: Identity, message: CreateTenant, key_hash: bytes, prefix: str, owner: str | None, now: datetime
) -> NewTenantRow:
    """The tenant as it is written; without an owner where an operator makes it."""
    since = membership_content(message.id, owner, "owner", now) if owner else None
    return NewTenantRow(
        id=message.id,
        name=message.name,
        webhook_url=message.webhook_url,
        key_hash=key_hash,
        key_prefix=prefix,
        key_mac=identity.sealer.mac(TENANT_KEY_MAC, message.id, fields(message.id, key_hash)),
        owner=owner,
        membership_mac=identity.sealer.mac(MEMBERSHIP_MAC, message.id, since) if since else None,
        created_at=now,
    )


def _key_of(message: CreateTenant) -> tuple[str | None, bytes, str]:
    """The key to show (if made here), its hash, and the prefix it is recognised by."""
    given = message.api_key
    if given is None:
        made = tokens.new_api_key("ck")
        return made, tokens.digest(made), tokens.prefix_of(made)
    if _HASH.fullmatch(given):
        return None, bytes.fromhex(given), f"sha256:{given[:8]}"
    if not 32 <= len(given) <= 256:
        raise BadApiKey
    # No part of a key that somebody chose: it is in every audit row, and the rest may be a word.
    hashed = tokens.digest(given)
    return None, hashed, f"sha256:{hashed.hex()[:8]}"
