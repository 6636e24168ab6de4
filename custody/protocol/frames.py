"""The frames around a command: the greeting, the request, and its reply. Normative text: docs/protocol.md.

Strict: an unknown field, message or version is refused.
"""

from typing import Any

import msgspec

from custody.kit.callers import Authorization, IdempotencyKey, Origin, Proof
from custody.protocol.failures import Kind

VERSION = 2
MAX_FRAME = 1024 * 1024


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first frame of a connection, in both directions."""

    version: int
    process: str


class Request[C](msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One command. `n` pairs it with its reply; `deadline_ms` is how long the asker will wait."""

    v: int
    n: int
    deadline_ms: int
    origin: Origin
    body: C
    proof: Proof | None = None
    idempotency: IdempotencyKey | None = None
    # Only where the command takes one.
    authorization: Authorization | None = None


class Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A failure, as one of a few kinds, with a sentence for people and a code for programs."""

    kind: Kind
    code: str
    message: str
    context: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer, of the type that the command declares, or why there is none.

    `replayed`: the answer is the one that an earlier request with the same key got.
    """

    n: int
    # MessagePack's nil, where there is none.
    answer: msgspec.Raw = msgspec.Raw(b"\xc0")
    failed: Failed | None = None
    replayed: bool = False
