"""Outcomes of an order, as the signer answers them."""

from typing import Annotated

import msgspec

from custody.kit.described import Id, Instant, described
from custody.policies.types import CheckQuestion, Left, Result, Room


class PsbtReleased(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of a signed PSBT beside its bytes; `final` is the whole transaction, where it could be finished."""

    scope: str
    address: str
    address_type: str
    network: str
    inputs: int
    fee: int
    final: bytes | None = None
    vsize: int | None = None


class PaymentReleased(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header that carries a payment to the server that demanded it, and until which second it can be used."""

    header: str
    value: str
    asset: str
    amount: str
    until: int

    def __repr__(self) -> str:
        return f"PaymentReleased({self.amount} of {self.asset})"


class Signed(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Committed and released. `raw` are the bytes for the node, `signature` what the caller asked for."""

    tx_id: str
    kind: str
    tx_hash: str | None
    signature: str
    raw: bytes | None
    chain_id: int | None
    caip2: str | None
    broadcast: bool
    approval_id: str | None = None
    resolved_at: str | None = None
    # Of a wallet action that a rate limit let through.
    left: Left | None = None
    psbt: PsbtReleased | None = None
    payment: PaymentReleased | None = None


class Queued(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A person must decide."""

    tx_id: str
    approval_id: str
    results: list[Result]
    reason: str
    # When it is signed by itself, unless somebody decides before.
    release_at: str | None = None


class Refused(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A hard rule says no; `room` if only rate limits do, and the order may come again as it is."""

    tx_id: str
    results: list[Result]
    reason: str
    room: Room | None = None
    # Only votes are missing: nothing was written, and the item stays.
    lacks_votes: bool = False


class VoteGiven(msgspec.Struct, frozen=True, rename="camel"):
    """One voter, and the time of the vote."""

    user_id: Annotated[Id, described("The person.")]
    voted_at: Annotated[Instant, described("Time of the vote.")]


class Voted(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The vote was kept, and more are needed."""

    approval_id: str
    tx_id: str
    have: int
    need: int
    by: list[VoteGiven]


class BatchSigned(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A batch of calls, committed and released: one transaction for each call, in their order."""

    signed: list[Signed]


class Proposed(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A batch of calls waits as an intent for a person."""

    intent_id: str
    results: list[Result]
    reason: str


class NeedsPreparation(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The order would be signed and broadcast, but no node was asked for its nonce and fees. Nothing was written."""


class NeedsChecks(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """No rule refuses the order, and services are to be asked about it first. Nothing was written."""

    questions: list[CheckQuestion]


Decided = Signed | Queued | Refused | NeedsPreparation | NeedsChecks | Voted
