"""Make, replace and delete secrets; the signer seals each value as soon as it arrives."""

from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType

from api.areas.secrets.types import NewSecretBody, NewValueBody, StoredSecret, StoredValue
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.signer.refusals import BadExpiry, ValueTooLong
from custody.protocol.signer.secrets import CreateSecret, RotateSecret

MAX_BYTES = 65_536
# Shorter values turn up by chance in what has nothing to do with them.
_SHORT = 8
_BYTE_ORDER_MARK, _BLANKS = "\ufeff", " \t\r\n\u00a0"


async def create(ports: Ports, caller: TenantCaller, body: NewSecretBody) -> Answered[StoredSecret]:
    """Keep a secret under a name that no other living one has."""
    message = CreateSecret(body.name, _check_length(body.value), body.description, _moment(body.expires_at))
    answered, odd = await ports.workers.ask(message, caller), _warnings_about(body.value)
    return answered.to(lambda made: StoredSecret(**msgspec.structs.asdict(made), warnings=odd))


async def replace(
    ports: Ports, caller: TenantCaller, secret: str, body: NewValueBody, *, rotate: bool
) -> Answered[StoredValue]:
    """Give a secret its next value; `rotate` is which of the two routes was called, for the audit trail."""
    answered = await ports.workers.ask(RotateSecret(secret, _check_length(body.value), rotate), caller)
    odd = _warnings_about(body.value)
    return answered.to(lambda made: StoredValue(**msgspec.structs.asdict(made), warnings=odd))


def _warnings_about(value: str) -> list[str] | UnsetType:
    """Sentences about a value that is stored as it is, and that its owner may not have meant."""
    odd = []
    if len(value) < _SHORT:
        odd.append(
            f"The value has fewer than {_SHORT} characters: the proxy masks it wherever it occurs in an answer, also by"
            " chance, which may break JSON. Use a longer one where you can."
        )
    if value.startswith(_BYTE_ORDER_MARK):
        odd.append("The value begins with a byte-order mark, which is injected too; store it without that.")
    bare = value.removeprefix(_BYTE_ORDER_MARK)
    if bare.strip(_BLANKS) != bare:
        odd.append("The value has blanks or line ends around it, which are injected too; store it without them.")
    return odd or UNSET


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
