"""Tenants: their keys are hashed and sealed here, and what they judge by. Spec 2/4.3, 4.4."""

import re
from typing import Any

import asyncpg
import msgspec

from custody.kit import clock, tokens
from custody.kit.errors import Conflict, Invalid, NotFound, Unavailable
from custody.protocol.messages import CreateTenant, DeleteTenant, Done, Outcome, PutJudgingConfig
from signer.context import Ask, Signer
from signer.idempotency import packed
from signer.proofs import PLATFORM, TENANT_KEY_MAC, ProvenPlatform, ProvenTenant
from signer.sealing import fields

WRITE_SCOPE = "platform:tenant:write"
_HASH = re.compile(r"[0-9a-f]{64}")
_CREATE = "SELECT create_tenant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
_DELETE = "SELECT delete_tenant($1, $2, $3, $4, $5, $6, $7, $8)"
_PUT_CONFIG = "SELECT put_config($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
CONFIG_TRIES = 4


class TenantTaken(Conflict):
    """A tenant with this id already exists."""


class TenantKeyTaken(Conflict):
    """This API key belongs to another tenant already; every tenant needs its own."""


class TenantAbsent(NotFound):
    """There is no such tenant."""


async def create(signer: Signer, message: CreateTenant, ask: Ask[ProvenPlatform]) -> Outcome:
    """Make a tenant and its API key; a key that was made here is shown once."""
    ask.caller.need(WRITE_SCOPE)
    if message.id == PLATFORM:
        raise Invalid("The tenant id 'platform' is reserved; choose another.", code="tenant_id_reserved")
    shown, key_hash, prefix = _key_of(message)
    mac = signer.sealer.mac(TENANT_KEY_MAC, message.id, fields(message.id, key_hash))
    data = {"id": message.id, "name": message.name, "apiKeyHash": key_hash.hex(), "apiKey": shown}
    now = clock.now()
    outcome = Done(data | {"createdAt": clock.iso(now)})
    route, idempotency_key, fingerprint = ask.key_row
    try:
        async with signer.pool.acquire() as connection:
            await connection.execute(
                _CREATE, message.id, message.name, message.webhook_url, key_hash, prefix, mac, route,
                ask.caller.principal, idempotency_key, fingerprint, None if shown else packed(outcome),
                ask.caller.principal, ask.origin_row, now,
            )  # fmt: skip
    except asyncpg.UniqueViolationError as problem:
        raise (TenantTaken if problem.constraint_name == "tenants_pkey" else TenantKeyTaken) from None
    return outcome


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
    ask.caller.need(WRITE_SCOPE)
    outcome = Done({"deleted": message.id})
    route, idempotency_key, fingerprint = ask.key_row
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _DELETE, message.id, route, ask.caller.principal, idempotency_key, fingerprint, packed(outcome),
            ask.caller.principal, ask.origin_row,
        )  # fmt: skip
    if result == "absent":
        raise TenantAbsent
    return outcome


async def put_config(signer: Signer, message: PutJudgingConfig, ask: Ask[ProvenTenant]) -> Outcome:
    """Store the whole configuration in one transaction, its judging part under a MAC."""
    outcome = Done({"stored": True})
    for _ in range(CONFIG_TRIES):
        async with signer.pool.acquire() as connection:
            if await _put(connection, signer, message, ask, outcome):
                return outcome
    raise Unavailable


async def _put(
    connection: Any, signer: Signer, message: PutJudgingConfig, ask: Ask[ProvenTenant], outcome: Outcome
) -> bool:
    tenant = ask.caller.tenant
    version = await connection.fetchval("SELECT config_version($1)", tenant)
    try:
        text, mac = signer.judging.seal(tenant, version + 1, message.judging)
    except msgspec.ValidationError as problem:
        raise Invalid(f"approvalConfig: {problem}", code="bad_approval_config") from None
    result = await connection.fetchval(
        _PUT_CONFIG, tenant, version, message.document, text, mac, ask.caller.key_hash, ask.caller.principal,
        *ask.key_row, packed(outcome), ask.caller.principal, ask.origin_row,
    )  # fmt: skip
    return bool(result == "done")
