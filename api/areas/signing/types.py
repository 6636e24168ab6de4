"""The answers of signing routes; the bodies of 202 and 403 are alike on all of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.answer_kinds import Declined, Deferred, Throttled
from custody.kit.described import Id, Instant, described
from custody.policies.types import Result
from custody.protocol.signer.outcomes import Queued, Refused, Signed
from custody.transactions.store import encode_signed


class Released(msgspec.Struct, frozen=True):
    """All that an answer may tell of a signed order; the answer of its kind has the fields of these that it shows."""

    tx_id: str
    tx_hash: str | None
    signature: str
    broadcast: bool
    chain_id: int | None
    caip2: str | None
    # Of an order that was not broadcast: its bytes, as its family writes them.
    signed_transaction: str | None


_CODE = "The word for programs; it never changes."


class Pending(msgspec.Struct, frozen=True, rename="camel"):
    """Queued: a person must approve the order before it is signed; nothing needs to be sent again."""

    tx_id: Annotated[Id, described("The transaction.")]
    approval_id: Annotated[Id, described("Id of the approval; see `/approvals`.")]
    results: Annotated[list[Result], described("Result of each rule for the order.")]
    status: Annotated[Literal["pending_approval"], described("Always `pending_approval`.")] = "pending_approval"
    code: Annotated[Literal["approval_required"], Meta(description=_CODE)] = "approval_required"
    release_at: Annotated[
        Instant | None,
        described("Time at which it is signed by itself unless somebody decides before; null if a person must."),
    ] = None


class PolicyRefused(msgspec.Struct, frozen=True, rename="camel"):
    """A rule refuses the order (`results` says which and why), a person denied it, or the agent withdrew it."""

    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    results: Annotated[list[Result], described("Result of each rule for the order.")]
    code: Annotated[Literal["policy_refused", "approval_denied", "withdrawn"], Meta(description=_CODE)] = (
        "policy_refused"
    )


class PolicyRateLimited(msgspec.Struct, frozen=True, rename="camel"):
    """A rate-limit rule has no room for another order; send the same request after `Retry-After` seconds."""

    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    results: Annotated[list[Result], described("Result of each rule for the order.")]
    code: Annotated[Literal["policy_rate_limited"], Meta(description=_CODE)] = "policy_rate_limited"


type Undecided = Deferred[Pending] | Declined[PolicyRefused] | Throttled[PolicyRateLimited]
type Decided[T] = T | Undecided


def signed_answer[T](signed: Signed, shape: type[T]) -> T:
    """The answer for a signed order, in the shape of its kind."""
    raw = None if signed.raw is None or signed.broadcast else encode_signed(signed.kind, signed.raw)
    told = Released(
        signed.tx_id, signed.tx_hash, signed.signature, signed.broadcast, signed.chain_id, signed.caip2, raw
    )
    return msgspec.convert(told, shape, from_attributes=True)


def pending(outcome: Queued) -> Deferred[Pending]:
    """The answer for an order that waits for a person."""
    return Deferred(
        Pending(outcome.tx_id, outcome.approval_id, outcome.results, release_at=outcome.release_at), outcome.reason
    )


def refusal_of_ended(outcome: Queued, detail: str | None) -> Declined[PolicyRefused]:
    """The answer for an order that waited for a person and will never be signed."""
    return Declined(PolicyRefused(outcome.tx_id, outcome.results, code_of(detail)), why_ended(detail, "order"))


def code_of(detail: str | None) -> Literal["approval_denied", "withdrawn"]:
    """The word for programs of the end that a status' detail names."""
    return "withdrawn" if detail == "withdrawn" else "approval_denied"


def why_ended(detail: str | None, what: str) -> str:
    """The same as one sentence for people."""
    match detail:
        case "denied":
            return f"A person denied this {what}."
        case "approval_expired":
            return f"Nobody approved this {what} in time."
        case "withdrawn":
            return f"The agent withdrew this {what}."
    return f"This {what} was rejected."


def refusal(outcome: Refused) -> Declined[PolicyRefused] | Throttled[PolicyRateLimited]:
    """The answer for an order that a hard rule refused."""
    if (room := outcome.room) is not None:
        data = PolicyRateLimited(outcome.tx_id, outcome.results)
        return Throttled(data, outcome.reason, retry_after=room.seconds, limit=room.limit)
    return Declined(PolicyRefused(outcome.tx_id, outcome.results), outcome.reason)
