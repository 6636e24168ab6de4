"""The common part of events' payloads, and those of people, which identity emits: it knows nothing of orders."""

from typing import Annotated, ClassVar, Literal

import msgspec

from custody.kit.described import Id, described

# Encoded once, as the bytes that a delivery sends.
_encode = msgspec.json.Encoder().encode


class Payload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of every payload. `event` is the name under which it is sent."""

    event: ClassVar[str]


class UserUnlinkedAccount(Payload, frozen=True, kw_only=True):
    """A tenant's admin unlinked a member's wallet by the wallet policy; its address is left out."""

    event: ClassVar[str] = "user.unlinked_account"
    user_id: Annotated[Id, described("The member.")]
    provider: Annotated[str, described("Kind of wallet.")]
    account_id: Annotated[Id, described("The id of the linked account.")]
    redacted: Annotated[Literal[True], described("Always true: the wallet's address is left out.")] = True


class _Emitted(msgspec.Struct, frozen=True, omit_defaults=True):
    event: str
    data: Payload
    mark: str | None = None


def encode_events(*payloads: Payload, mark: str | None = None) -> str:
    """Payloads as the SQL function `emit` takes them; those under one mark are sent once a minute at most."""
    return _encode([_Emitted(payload.event, payload, mark) for payload in payloads]).decode()
