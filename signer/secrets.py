"""Secrets of a tenant: sealed when they come in, opened for a credential route alone.

No answer, audit row or log holds a value. A rotated value takes the old one's place, and a deleted secret has none.
"""

from datetime import UTC, datetime
from typing import Any

import asyncpg

from custody.credentials.rules import value_fits
from custody.kit import clock, ids
from custody.kit.quotas import check as check_quota
from custody.kit.quotas import excess
from custody.protocol.signer.refusals import (
    BadDescription,
    BadExpiry,
    CredentialsMoving,
    SecretAbsent,
    SecretNameTaken,
    ValueTooLong,
)
from custody.protocol.signer.secrets import (
    CreateSecret,
    DeletedSecret,
    DeleteSecret,
    RotatedSecret,
    RotateSecret,
    Secret,
)
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenTenant
from signer.context import Signer
from signer.credentials import TRIES, VALUE_OF, changing, open_route, place, turn

MAX_VALUE_BYTES = 64 * 1024
MAX_DESCRIPTION = 1000
# The database's own end, whatever the quota.
MAX_SECRETS = 10_000
# Later than any use, and early enough to be a time in every zone.
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
_CREATE = "SELECT create_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_USAGE = "SELECT * FROM usage_read($1)"
_ROTATE = "SELECT rotate_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_DELETE = "SELECT delete_secret($1, $2, $3, $4, $5)"


async def create(signer: Signer, message: CreateSecret, call: Call[ProvenTenant]) -> Secret:
    """Seal a secret as its version 1, under a name that no other living secret of the tenant has."""
    tenant, secret, now = call.caller.tenant, ids.new_uuid(), clock.now()
    value, expires_at = _encode(message.value), _expiry(message.expires_at, now)
    _check_description(message.description)
    outcome = Secret(
        id=secret,
        name=message.name,
        description=message.description,
        version=1,
        expires_at=clock.iso(expires_at) if expires_at else None,
        created_at=clock.iso(now),
    )
    blob = signer.sealer.seal(value, place(tenant, secret, 1, expires_at))
    try:
        async with turn(signer, tenant) as connection:
            used = await connection.fetchrow(_USAGE, tenant)
            check_quota("secrets", used["secrets"], signer.quotas.limits.of(tenant).secrets)
            result = await connection.fetchval(
                _CREATE,
                *changing(call, outcome, name=message.name, version=1),
                secret,
                message.name,
                message.description,
                expires_at,
                signer.sealer.key_version,
                blob,
                now,
            )
    except asyncpg.UniqueViolationError as problem:
        if problem.constraint_name != "secrets_name":
            raise
        raise SecretNameTaken from None
    if result == "full":
        raise excess("secrets", MAX_SECRETS, MAX_SECRETS)
    return outcome


async def rotate(signer: Signer, message: RotateSecret, call: Call[ProvenTenant]) -> RotatedSecret:
    """Seal the next version in place of the one before it; every route uses it from now on."""
    value = _encode(message.value)
    async with turn(signer, call.caller.tenant) as connection:
        for _ in range(TRIES):
            if (outcome := await _rotate(connection, signer, message, call, value)) is not None:
                return outcome
    raise CredentialsMoving


async def _rotate(
    connection: Any, signer: Signer, message: RotateSecret, call: Call[ProvenTenant], value: bytes
) -> RotatedSecret | None:
    """One try at the version that was read; None when somebody else was faster."""
    sealer, tenant, secret, now = signer.sealer, call.caller.tenant, message.secret, clock.now()
    row = await connection.fetchrow(VALUE_OF, tenant, secret)
    if row is None:
        raise SecretAbsent
    fits_header = row["header_route"] is not None
    if fits_header:
        stored = row["header_fields"], row["header_mac"]
        value_fits(open_route(sealer, tenant, str(row["header_route"]), secret, stored), message.value)
    version = row["version"] + 1
    outcome = RotatedSecret(secret, row["name"], version, clock.iso(now))
    result = await connection.fetchval(
        _ROTATE,
        *changing(call, outcome, name=row["name"], version=version),
        secret,
        version,
        sealer.key_version,
        sealer.seal(value, place(tenant, secret, version, row["expires_at"])),
        fits_header,
        now,
        vet("secret.rotated" if message.rotate else "secret.updated"),
    )
    return outcome if result == "done" else None


async def delete(signer: Signer, message: DeleteSecret, call: Call[ProvenTenant]) -> DeletedSecret:
    """Destroy the value and give the name free; the routes of the secret stay, and fail."""
    outcome = DeletedSecret(message.secret)
    async with turn(signer, call.caller.tenant) as connection:
        result = await connection.fetchval(_DELETE, *changing(call, outcome), message.secret, clock.now())
    if result == "absent":
        raise SecretAbsent
    return outcome


def _encode(value: str) -> bytes:
    encoded = value.encode()
    if len(encoded) > MAX_VALUE_BYTES:
        raise ValueTooLong(fields=["value"])
    return encoded


def _expiry(given: datetime | None, now: datetime) -> datetime | None:
    """The expiry as it is stored and sealed: in milliseconds, as it is shown."""
    if given is None:
        return None
    if given.tzinfo is None or not now < given < _LATEST:
        raise BadExpiry(fields=["expiresAt"])
    return given.astimezone(UTC).replace(microsecond=given.microsecond // 1000 * 1000)


def _check_description(given: str | None) -> None:
    if given is not None and (len(given) > MAX_DESCRIPTION or "\0" in given):
        raise BadDescription(fields=["description"])
