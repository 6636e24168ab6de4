"""The others who must agree: signers and key quorums of an agent, and whether what was shown is enough. Pure.

Normative: docs/signers.md. Rows are read by `authority_read`; their seal is `signer/authority_seals.py`.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from custody.kit.described import described

Permission = Literal[
    "sign_transaction",
    "sign_message",
    "sign_typed_data",
    "sign_user_operation",
    "sign_authorization",
    "send_calls",
    "transfer",
    "solana_transaction",
    "export_private_key",
]
SignerType = Literal["owner", "delegated", "service", "quorum_member"]
SubjectType = Literal["user", "wallet", "api_key", "external"]
KeyType = Literal["hmac", "p256"]
Standing = Literal["active", "paused", "revoked"]
MAX_SIGNERS: Final = 64
MAX_QUORUMS: Final = 32
MAX_MEMBERS: Final = 32
MAX_DEPTH: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class SignerRow(NamedTuple):
    """A living signer as `authority_read` tells of it; lists are the JSON text of their column."""

    id: str
    signer_type: SignerType
    subject_type: SubjectType
    subject_id: str
    key_type: KeyType
    public_key: str | None
    permissions: str
    policy_ids: str
    status: Standing
    # In microseconds since 1970.
    not_before: int | None = None
    expires_at: int | None = None


class QuorumRow(NamedTuple):
    """A living quorum, likewise."""

    id: str
    threshold: int
    members: str
    children: str
    permissions: str
    status: Standing


class StoredAuthority(msgspec.Struct, frozen=True, array_like=True):
    """Everything that `authority_read` answers; credentials are sealed, in base64, by signer id."""

    head: tuple[int, int, str] | None
    signers: list[SignerRow]
    quorums: list[QuorumRow]
    credentials: dict[str, str]


class Signer(msgspec.Struct, frozen=True, kw_only=True):
    """One who may authorise; `public_key` is SPKI, of P-256 signers alone."""

    id: str
    signer_type: SignerType
    subject: tuple[SubjectType, str]
    key_type: KeyType
    public_key: bytes | None
    permissions: frozenset[str]
    policy_ids: tuple[str, ...]
    status: Standing
    not_before: int | None = None
    expires_at: int | None = None

    def is_in_time(self, now: int) -> bool:
        """Say whether it authorises at this moment: from its first one on, and not at its last one any more."""
        return (self.not_before is None or self.not_before <= now) and (
            self.expires_at is None or now < self.expires_at
        )


class Quorum(msgspec.Struct, frozen=True, kw_only=True):
    """The threshold of signers and member quorums that must agree."""

    id: str
    threshold: int
    members: tuple[str, ...]
    children: tuple[str, ...]
    permissions: frozenset[str]
    status: Standing


class Authority(msgspec.Struct, frozen=True):
    """A whole set that was checked against its head, by id."""

    signers: dict[str, Signer]
    quorums: dict[str, Quorum]

    def at(self, now: datetime) -> "Authority":
        """The same set at a moment: who is outside their time authorises as little as who is paused."""
        outside = [one for one in self.signers.values() if not one.is_in_time(microseconds(now))]
        paused = {one.id: msgspec.structs.replace(one, status="paused") for one in outside}
        return msgspec.structs.replace(self, signers={**self.signers, **paused}) if paused else self


class Authorized(msgspec.Struct, frozen=True, rename="camel"):
    """By whom an order was authorised, as its receipt and its audit row say it too."""

    quorum: Annotated[str | None, described("The key quorum; null where a single signer did.")]
    signers: Annotated[tuple[str, ...], described("The signers that were shown.")]
    policy_ids: Annotated[
        tuple[str, ...], described("The rules that these signers name; they bound the order besides the agent's own.")
    ]


def microseconds(moment: datetime) -> int:
    """Count the microseconds since 1970, as sealed rows have their times."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
