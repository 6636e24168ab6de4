"""Make, replace and delete secrets; the signer seals each value as soon as it arrives."""

from datetime import UTC, datetime

from api.areas.secrets.types import NewSecretBody, NewValueBody
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.signer.refusals import BadExpiry, ValueTooLong
from custody.protocol.signer.secrets import CreateSecret, RotatedSecret, RotateSecret, Secret

MAX_BYTES = 65_536


async def create(ports: Ports, caller: TenantCaller, body: NewSecretBody) -> Answered[Secret]:
    """Keep a secret under a name that no other living one has."""
    message = CreateSecret(body.name, _check_length(body.value), body.description, _moment(body.expires_at))
    return await ports.workers.ask(message, caller)


async def replace(
    ports: Ports, caller: TenantCaller, secret: str, body: NewValueBody, *, rotate: bool
) -> Answered[RotatedSecret]:
    """Give a secret its next value; `rotate` is which of the two routes was called, for the audit trail."""
    return await ports.workers.ask(RotateSecret(secret, _check_length(body.value), rotate), caller)


def _check_length(value: str) -> str:
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
