"""Tenants: made and deleted; their keys are hashed and sealed here. Spec 2/4.3, 4.4."""

import re
from datetime import datetime
from typing import Any

import asyncpg

from custody.kit import clock, tokens
from custody.kit.callers import Origin
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.protocol.messages import CreateTenant, DeleteTenant, Done, Outcome
from signer.administration.acts import demand_platform_key
from signer.context import Ask, Signer
from signer.idempotency import packed
from signer.proofs import (
    MEMBERSHIP_MAC,
    PLATFORM,
    TENANT_KEY_MAC,
    ProvenPlatform,
    ProvenSession,
    membership_content,
)
from signer.sealing import fields

WRITE_SCOPE = "platform:tenant:write"
_HASH = re.compile(r"[0-9a-f]{64}")
PERSONAL_PREFIX = "personal-"
PERSONAL_NAME = "Personal"
# Of a person, beside his personal one: signing up is free, and what a tenant keeps is kept for good.
MAX_MADE = 20
_CREATE = "SELECT create_tenant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
_DELETE = "SELECT delete_tenant($1, $2, $3, $4, $5, $6, $7, $8)"


class TenantTaken(Conflict):
    """A tenant with this id already exists."""


class TenantKeyTaken(Conflict):
    """This API key belongs to another tenant already; every tenant needs its own."""


class TooManyTenants(Conflict):
    """You made 20 tenants already; the operator can make more, or delete some."""


class TenantAbsent(NotFound):
    """There is no such tenant."""


async def create(signer: Signer, message: CreateTenant, ask: Ask[ProvenPlatform] | Ask[ProvenSession]) -> Outcome:
    """Make a tenant and its API key; a key that was made here is shown once. A person who asks becomes its owner."""
    if message.id == PLATFORM or message.id.startswith(PERSONAL_PREFIX):
        raise Invalid(f"The tenant id {message.id!r} is reserved; choose another.", code="tenant_id_reserved")
    shown, key_hash, prefix = _key_of(message)
    data = {"id": message.id, "name": message.name, "apiKeyHash": key_hash.hex(), "apiKey": shown}
    now, caller = clock.now(), ask.caller
    outcome = Done(data | {"createdAt": clock.iso(now)})
    person = caller if isinstance(caller, ProvenSession) else None
    try:
        async with signer.pool.acquire() as connection, connection.transaction():
            if isinstance(caller, ProvenPlatform):
                await demand_platform_key(connection, ask)
            result = await connection.fetchval(
                _CREATE, message.id, message.name, message.webhook_url, key_hash, prefix,
                _key_mac(signer, message.id, key_hash),
                *_owner(signer, message.id, person.user if person else None, now),
                person.tenant if person else PLATFORM, person.standing if person else None, *ask.key_row,
                None if shown else packed(outcome), caller.principal, ask.origin_row, now, MAX_MADE,
            )  # fmt: skip
    except asyncpg.UniqueViolationError as problem:
        raise (TenantTaken if problem.constraint_name == "tenants_pkey" else TenantKeyTaken) from None
    if result == "too_many":
        raise TooManyTenants
    return outcome


async def make_personal(connection: Any, signer: Signer, tenant: str, user: str, origin: Origin) -> str:
    """A person's own tenant, in the transaction of the first sign-in; its API key, which is shown this once."""
    api_key = tokens.new_api_key("ck")
    key_hash, now = tokens.digest(api_key), clock.now()
    await connection.execute(
        _CREATE, tenant, PERSONAL_NAME, None, key_hash, tokens.prefix_of(api_key),
        _key_mac(signer, tenant, key_hash), *_owner(signer, tenant, user, now), PLATFORM, None, None, None, None, None,
        f"user:{user}", [origin.request_id, origin.ip, origin.user_agent], now, MAX_MADE,
    )  # fmt: skip
    return api_key


def _key_mac(signer: Signer, tenant: str, key_hash: bytes) -> bytes:
    return signer.sealer.mac(TENANT_KEY_MAC, tenant, fields(tenant, key_hash))


def _owner(signer: Signer, tenant: str, user: str | None, since: datetime) -> tuple[str | None, bytes | None]:
    """The owner and the MAC of the membership; nobody where an operator made the tenant."""
    if user is None:
        return None, None
    return user, signer.sealer.mac(MEMBERSHIP_MAC, tenant, membership_content(tenant, user, "owner", since))


def _key_of(message: CreateTenant) -> tuple[str | None, bytes, str]:
    """The key to show (if made here), its hash, and the prefix it is recognised by."""
    given = message.api_key
    if given is None:
        made = tokens.new_api_key("ck")
        return made, tokens.digest(made), tokens.prefix_of(made)
    if _HASH.fullmatch(given):
        return None, bytes.fromhex(given), f"sha256:{given[:8]}"
    if not 32 <= len(given) <= 256:
        raise Invalid(
            "apiKeyHash must be 64 lower-case hex digits (a SHA-256), or a raw key of 32 to 256 characters.",
            code="bad_api_key",
        )
    return None, tokens.digest(given), tokens.prefix_of(given)[:6]


async def delete(signer: Signer, message: DeleteTenant, ask: Ask[ProvenPlatform]) -> Outcome:
    """Delete a tenant with everything it has. Permanent."""
    outcome = Done({"deleted": message.id})
    route, idempotency_key, fingerprint = ask.key_row
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _DELETE, message.id, tokens.digest(ask.shown), route, ask.caller.principal, idempotency_key, fingerprint,
            packed(outcome), ask.origin_row,
        )  # fmt: skip
    if result == "absent":
        raise TenantAbsent
    return outcome
