"""Make, replace and delete secrets. Spec 2/4.5; the signer seals each value as soon as it arrives."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import CreateSecret, DeleteSecret, RotateSecret
from custody.secrets.types import (
    BadExpiry,
    DeletedSecret,
    NewSecretBody,
    NewValueBody,
    RotatedSecret,
    Secret,
    ValueTooLong,
)

MAX_BYTES = 65_536


async def create(ports: Ports, caller: TenantCaller, body: NewSecretBody) -> Any:
    """Keep a secret under a name that no other living one has."""
    message = CreateSecret(body.name, _bounded(body.value), body.description, _moment(body.expires_at))
    data = await asked(ports.signer, message, caller)
    return data.replayed_or(msgspec.convert(data, Secret))


async def replace(ports: Ports, caller: TenantCaller, secret: str, body: NewValueBody, *, rotate: bool) -> Any:
    """Give a secret its next value; `rotate` is which of the two routes was called, for the audit trail."""
    data = await asked(ports.signer, RotateSecret(secret, _bounded(body.value), rotate), caller)
    return data.replayed_or(msgspec.convert(data, RotatedSecret))


async def delete(ports: Ports, caller: TenantCaller, secret: str) -> Any:
    """Destroy a secret's value and free its name."""
    data = await asked(ports.signer, DeleteSecret(secret), caller)
    return data.replayed_or(msgspec.convert(data, DeletedSecret))


def _bounded(value: str) -> str:
    # The shape counts characters; what is sealed and injected is bytes.
    if len(value.encode()) > MAX_BYTES:
        raise ValueTooLong(fields=["value"])
    return value


def _moment(text: str | None) -> datetime | None:
    """The time in UTC, in the milliseconds that answers show."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
        moment = given.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadExpiry(fields=["expiresAt"]) from None
    # Whether it lies in the future is the signer's question: a repeated request gets its answer after that, too.
    if given.tzinfo is None:
        raise BadExpiry(fields=["expiresAt"])
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
