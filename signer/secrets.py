"""Secrets of a tenant: sealed when they come in, opened for a credential route alone. Spec 2/2.11, 4.5, decisions 8.

No answer, audit row or log holds a value. A rotated value takes the old one's place, and a deleted secret has none.
"""

from datetime import UTC, datetime
from typing import Any

import asyncpg

from custody.credentials.rules import value_fits
from custody.kit import clock, ids
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.protocol.messages import CreateSecret, DeleteSecret, Done, Outcome, RotateSecret
from signer.context import Ask, Signer
from signer.credentials import TRIES, CredentialsMoving, closing, open_route, place, turn
from signer.proofs import ProvenTenant

MAX_VALUE_BYTES = 64 * 1024
MAX_DESCRIPTION = 1000
# Later than any use, and early enough to be a time in every zone.
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
_CREATE = "SELECT create_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
_READ = "SELECT * FROM secret_read($1, $2)"
_ROTATE = "SELECT rotate_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
_DELETE = "SELECT delete_secret($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


class SecretAbsent(NotFound):
    """There is no such secret."""


class SecretNameTaken(Conflict):
    """A secret with this name already exists."""


class TooManySecrets(Conflict):
    """A tenant has at most 10,000 secrets; delete one that is not used."""


class ValueTooLong(Invalid):
    """The value of a secret has at most 64 KiB in UTF-8."""


class BadDescription(Invalid):
    """A description has at most 1,000 characters, and no NUL."""


class BadExpiry(Invalid):
    """expiresAt must be in the future, with its time zone."""


async def create(signer: Signer, message: CreateSecret, ask: Ask[ProvenTenant]) -> Outcome:
    """Seal a secret as its version 1, under a name that no other living secret of the tenant has."""
    tenant, secret, now = ask.caller.tenant, ids.new_uuid(), clock.now()
    value, expires_at = _encoded(message.value), _expiry(message.expires_at, now)
    _check_description(message.description)
    said = {"id": secret, "name": message.name, "description": message.description, "version": 1}
    times = {"expiresAt": clock.iso(expires_at) if expires_at else None, "createdAt": clock.iso(now), "rotatedAt": None}
    outcome = Done(said | times)
    blob = signer.sealer.seal(value, place(tenant, secret, 1, expires_at))
    try:
        async with turn(signer, tenant) as connection:
            result = await connection.fetchval(
                _CREATE, tenant, ask.caller.standing, secret, message.name, message.description, expires_at,
                signer.sealer.key_version, blob, now, *closing(ask, outcome, name=message.name, version=1),
            )  # fmt: skip
    except asyncpg.UniqueViolationError as problem:
        if problem.constraint_name != "secrets_name":
            raise
        raise SecretNameTaken from None
    if result == "full":
        raise TooManySecrets
    return outcome


async def rotate(signer: Signer, message: RotateSecret, ask: Ask[ProvenTenant]) -> Outcome:
    """Seal the next version in place of the one before it; every route uses it from now on."""
    value = _encoded(message.value)
    async with turn(signer, ask.caller.tenant) as connection:
        for _ in range(TRIES):
            if (outcome := await _rotate(connection, signer, message, ask, value)) is not None:
                return outcome
    raise CredentialsMoving


async def _rotate(
    connection: Any, signer: Signer, message: RotateSecret, ask: Ask[ProvenTenant], value: bytes
) -> Outcome | None:
    """One try at the version that was read; None when somebody else was faster."""
    sealer, tenant, secret, now = signer.sealer, ask.caller.tenant, message.secret, clock.now()
    row = await connection.fetchrow(_READ, tenant, secret)
    if row is None:
        raise SecretAbsent
    fits_header = row["header_route"] is not None
    if fits_header:
        stored = row["header_fields"], row["header_mac"]
        value_fits(open_route(sealer, tenant, str(row["header_route"]), secret, stored), message.value)
    version = row["version"] + 1
    outcome = Done({"id": secret, "name": row["name"], "version": version, "rotatedAt": clock.iso(now)})
    result = await connection.fetchval(
        _ROTATE, tenant, ask.caller.standing, secret, version, sealer.key_version,
        sealer.seal(value, place(tenant, secret, version, row["expires_at"])), fits_header, now,
        "secret.rotated" if message.rotate else "secret.updated",
        *closing(ask, outcome, name=row["name"], version=version),
    )  # fmt: skip
    return outcome if result == "done" else None


async def delete(signer: Signer, message: DeleteSecret, ask: Ask[ProvenTenant]) -> Outcome:
    """Destroy the value and give the name free; the routes of the secret stay, and fail."""
    outcome = Done({"deleted": message.secret})
    async with turn(signer, ask.caller.tenant) as connection:
        result = await connection.fetchval(
            _DELETE, ask.caller.tenant, ask.caller.standing, message.secret, clock.now(), *closing(ask, outcome)
        )
    if result == "absent":
        raise SecretAbsent
    return outcome


def _encoded(value: str) -> bytes:
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
