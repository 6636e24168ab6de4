"""Tenants: their keys are hashed and sealed here, and what they judge by. Spec 2/4.3, 4.4."""

import re

import asyncpg
import msgspec

from custody.kit import clock, tokens
from custody.kit.callers import IdempotencyKey, Origin
from custody.kit.errors import Conflict, Invalid, NotFound, Unavailable
from custody.protocol.messages import CreateTenant, DeleteTenant, Done, Outcome, PutJudgingConfig
from signer.context import Signer
from signer.idempotency import earlier, packed
from signer.proofs import PLATFORM, TENANT_KEY_MAC, ProvenPlatform, ProvenTenant
from signer.sealing import fields

WRITE_SCOPE = "platform:tenant:write"
_HASH = re.compile(r"[0-9a-f]{64}")
_CREATE = "SELECT create_tenant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_DELETE = "SELECT delete_tenant($1, $2, $3, $4, $5, $6, $7, $8)"
_PUT_CONFIG = "SELECT put_config($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
CONFIG_TRIES = 4


class TenantTaken(Conflict):
    """A tenant with this id already exists."""


class TenantKeyTaken(Conflict):
    """This API key belongs to another tenant already; every tenant needs its own."""


class TenantAbsent(NotFound):
    """There is no such tenant."""


async def create(
    signer: Signer, message: CreateTenant, caller: ProvenPlatform, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Make a tenant and its API key; a key that was made here is shown once."""
    caller.need(WRITE_SCOPE)
    if (answer := await earlier(signer, PLATFORM, caller.principal, key)) is not None:
        return answer, True
    if message.id == PLATFORM:
        raise Invalid("The tenant id 'platform' is reserved; choose another.", code="tenant_id_reserved")
    shown, key_hash, prefix = _key_of(message)
    mac = signer.sealer.mac(TENANT_KEY_MAC, message.id, fields(message.id, key_hash))
    data = {"id": message.id, "name": message.name, "apiKeyHash": key_hash.hex(), "apiKey": shown}
    try:
        async with signer.pool.acquire() as connection:
            created = await connection.fetchval(
                _CREATE, message.id, message.name, message.webhook_url, key_hash, prefix, mac, key.route if key else None,
                caller.principal, key.key_hash if key else None, key.fingerprint if key else None,
                None if shown else packed(Done(data | {"createdAt": clock.iso(clock.now())})),
                caller.principal, [origin.request_id, origin.ip, origin.user_agent],
            )  # fmt: skip
    except asyncpg.UniqueViolationError as problem:
        raise (TenantTaken if problem.constraint_name == "tenants_pkey" else TenantKeyTaken) from None
    return Done(data | {"createdAt": clock.iso(created)}), False


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


async def delete(
    signer: Signer, message: DeleteTenant, caller: ProvenPlatform, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Delete a tenant with everything it has. Permanent."""
    caller.need(WRITE_SCOPE)
    if (answer := await earlier(signer, PLATFORM, caller.principal, key)) is not None:
        return answer, True
    outcome = Done({"deleted": message.id})
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _DELETE, message.id, key.route if key else None, caller.principal, key.key_hash if key else None,
            key.fingerprint if key else None, packed(outcome), caller.principal, [origin.request_id, origin.ip, origin.user_agent],
        )  # fmt: skip
    if result == "absent":
        raise TenantAbsent
    return outcome, False


async def put_config(
    signer: Signer, message: PutJudgingConfig, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Store the whole configuration in one transaction, its judging part under a MAC."""
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    outcome = Done({"stored": True})
    for _ in range(CONFIG_TRIES):
        async with signer.pool.acquire() as connection:
            async with connection.transaction():
                await connection.execute("SELECT set_config('custody.tenant', $1, true)", caller.tenant)
                version = (
                    await connection.fetchval("SELECT version FROM tenant_config WHERE tenant_id = $1", caller.tenant)
                    or 0
                )
            try:
                text, mac = signer.judging.seal(caller.tenant, version + 1, message.judging)
            except msgspec.ValidationError as problem:
                raise Invalid(f"approvalConfig: {problem}", code="bad_approval_config") from None
            result = await connection.fetchval(
                _PUT_CONFIG, caller.tenant, version, message.document, text, mac, caller.key_hash, caller.principal,
                key.route if key else None, key.key_hash if key else None, key.fingerprint if key else None, packed(outcome),
                caller.principal, [origin.request_id, origin.ip, origin.user_agent],
            )  # fmt: skip
        if result == "done":
            return outcome, False
    raise Unavailable
