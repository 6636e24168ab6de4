"""The commands that every worker answers for itself."""

import msgspec

from custody.protocol.command import Command, command


class KeySet(msgspec.Struct, frozen=True):
    """Public keys as JWKs (RFC 8037), each with the `issuer` of what it signs."""

    keys: list[dict[str, str]]


class PricesHealth(msgspec.Struct, frozen=True):
    """The time at which the newest prices were issued, in seconds since 1970, and whether they are too old to count."""

    issued_at: int | None
    old: bool


class Health(msgspec.Struct, frozen=True):
    """A worker that is there. `waiting`: messages at work; `room`: the database takes rows; `commits`: it tells so.

    `history`: it has the orders that were acknowledged.
    """

    version: int
    counters: dict[str, int]
    waiting: int
    room: bool
    commits: bool = True
    history: bool = True
    # Audit logs that are sealed no more, at most 20.
    stopped_logs: list[str] = []
    # Of prices that an endpoint issues; None where there is no such endpoint.
    prices: PricesHealth | None = None


class Resealed(msgspec.Struct, frozen=True, tag=True):
    """The result of one batch of a rotation, and the table and place of the next one; no table: it was the last."""

    table: str | None
    after: list[str] | None
    done: int
    broken: int


@command("signer", "identity", senders=("api", "proxy"), repeatable=True)
class PublicKeys(Command[KeySet], frozen=True):
    """List the public halves of the token keys, as a JWK set."""


@command("signer", "identity", senders=("api", "scheduler", "operator", "proxy"), repeatable=True)
class Status(Command[Health], frozen=True):
    """Tell liveness and counters."""
