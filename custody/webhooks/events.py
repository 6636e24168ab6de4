"""The payload of each event, one struct a name. Nothing but these and what is in `payload.py` puts a
payload together, in Python or in SQL.

`docs/webhooks.md` lists the fields; tests/rules/webhooks/test_events.py compares.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from custody.chains.kinds import Kind
from custody.kit.described import Id, Instant, described
from custody.policies.types import Result, Window
from custody.protocol.signer.intent_words import IntentStatus, IntentType
from custody.webhooks.payload import Payload, UserUnlinkedAccount

# The payload is built on the path of every order: encoded once, as the bytes that a delivery sends.
_encode = msgspec.json.Encoder().encode
# An event is a notice, and goes to every endpoint: of a long order it has the beginning, and says how much is missing.
MAX_EFFECTS = 16
MAX_EFFECTS_BYTES = 8192


class OrderEvent(Payload, frozen=True, kw_only=True):
    """The fields of every event of an order; `clipped(...)` gives the last two fields."""

    tx_id: Annotated[Id, described("The transaction.")]
    kind: Annotated[Kind, described("Kind of order.")]
    to: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit; tokens are in `effects`.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    reference_id: Annotated[str | None, described("The caller's own reference.")]
    effects: Annotated[
        list[dict[str, Any]], described("What the order does, as the transaction shows it; the first 16, and 8 KiB.")
    ]
    more_effects: Annotated[int, described("How many effects were left out.")]


class TxPending(OrderEvent, frozen=True, kw_only=True):
    """An order waits for a person."""

    event: ClassVar[str] = "tx.pending"
    approval_id: Annotated[Id, described("The approval.")]
    policy_results: Annotated[list[Result], described("Result of each rule for the order.")]


class ApprovalVoted(Payload, frozen=True, kw_only=True):
    """A named approver voted for an order; it waits for more votes."""

    event: ClassVar[str] = "approval.voted"
    approval_id: Annotated[Id, described("The approval.")]
    tx_id: Annotated[Id, described("The transaction that waits.")]
    user_id: Annotated[Id, described("The person who voted.")]
    have: Annotated[int, described("Number of votes.")]
    need: Annotated[int, described("Number of votes needed.")]


class QuorumBreak(Payload, frozen=True, kw_only=True):
    """The operator disables the approval quorums of an agent, or cancelled that."""

    event: ClassVar[str] = "quorum.broken"
    effective_at: Annotated[Instant | None, described("From when on they count as disabled; null: it was cancelled.")]


class TxApproved(OrderEvent, frozen=True, kw_only=True):
    """A person approved an order; `tx.signed` follows."""

    event: ClassVar[str] = "tx.approved"
    approval_id: Annotated[Id, described("The approval.")]
    tx_hash: Annotated[str | None, described("The hash of the signed transaction; null for typed data.")]
    broadcast: Annotated[bool, described("True if the service sends it to a node.")]
    comment: Annotated[str | None, described("Comment of the person who approved it.")]
    resolved_by: Annotated[Literal["manual"], described("Who decided.")] = "manual"


class TxDenied(OrderEvent, frozen=True, kw_only=True):
    """A person denied an order, or its time was up."""

    event: ClassVar[str] = "tx.denied"
    approval_id: Annotated[Id, described("The approval.")]
    reason: Annotated[str | None, described("The reason that was given.")]
    resolved_by: Annotated[
        Literal["manual", "system"],
        described("A person or key (`manual`), or the service because the time was up (`system`)."),
    ]


class TxSigned(OrderEvent, frozen=True, kw_only=True):
    """An order was signed."""

    event: ClassVar[str] = "tx.signed"
    tx_hash: Annotated[str | None, described("The hash; null for a Solana order that is not broadcast.")]
    broadcast: Annotated[bool, described("True if the service sends it to a node.")]


class TxConfirmed(OrderEvent, frozen=True, kw_only=True):
    """A chain executed an order, so deep that it stays."""

    event: ClassVar[str] = "tx.confirmed"
    tx_hash: Annotated[str | None, described("The hash, or on Solana the signature.")]
    block: Annotated[int | None, described("The block that has it, or on Solana the slot.")]
    block_hash: Annotated[str | None, described("The block's hash; null on Solana.")]


class TxFailed(OrderEvent, frozen=True, kw_only=True):
    """An order was signed and can have no effect any more."""

    event: ClassVar[str] = "tx.failed"
    tx_hash: Annotated[str | None, described("The hash, or on Solana the signature.")]
    reason: Annotated[str, described("Why: `execution_reverted`, `replaced` or `blockhash_expired`.")]
    block: Annotated[int | None, described("The block or slot that shows it.")]
    block_hash: Annotated[str | None, described("The block's hash; null on Solana.")]
    taken_by: Annotated[str | None, described("The hash that took its nonce, if it is one of this wallet's.")]


class SpendThreshold(Payload, frozen=True, kw_only=True):
    """A share of a limit was reached."""

    event: ClassVar[str] = "spend.threshold"
    window: Annotated[Window, described("The span that the limit counts: rolling 24 hours, or rolling 7 days.")]
    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    spent: Annotated[str, described("What was spent, this order included, in the smallest unit.")]
    limit: Annotated[str, described("The limit in the smallest unit.")]
    percent: Annotated[int, described("The percentage that was reached.")]
    tx_id: Annotated[Id, described("The transaction that reached it.")]


class PolicyViolation(Payload, frozen=True, kw_only=True):
    """A hard rule refused an order."""

    event: ClassVar[str] = "policy.violation"
    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    to: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    failed_policies: Annotated[list[Result], described("The rules that refused it.")]


class IntentEvent(Payload, frozen=True, kw_only=True):
    """The fields of every event of an intent: its id and state, and nothing of what it does."""

    intent_id: Annotated[Id, described("The intent.")]
    intent_type: Annotated[IntentType, described("What kind of intent it is.")]
    agent_id: Annotated[str | None, described("The agent it is about.")]
    status: Annotated[IntentStatus, described("The state that it has come to.")]


class IntentCreated(IntentEvent, frozen=True, kw_only=True):
    """Somebody proposed something, and a person must authorise it."""

    event: ClassVar[str] = "intent.created"


class IntentAuthorized(IntentEvent, frozen=True, kw_only=True):
    """A person authorised an intent; it waits to be executed."""

    event: ClassVar[str] = "intent.authorized"


class IntentExecuted(IntentEvent, frozen=True, kw_only=True):
    """An intent was carried out."""

    event: ClassVar[str] = "intent.executed"


class IntentFailed(IntentEvent, frozen=True, kw_only=True):
    """An intent failed, or a person closed it as failed."""

    event: ClassVar[str] = "intent.failed"
    reason: Annotated[str | None, described("The `code` of its result: what went wrong.")]


class IntentRejected(IntentEvent, frozen=True, kw_only=True):
    """A person rejected an intent."""

    event: ClassVar[str] = "intent.rejected"
    reason: Annotated[str | None, described("The reason that was given.")]


class IntentCanceled(IntentEvent, frozen=True, kw_only=True):
    """A person cancelled an intent."""

    event: ClassVar[str] = "intent.canceled"


class IntentExpired(IntentEvent, frozen=True, kw_only=True):
    """Nobody decided over an intent in time, or a person ended it as expired."""

    event: ClassVar[str] = "intent.expired"


PAYLOADS: tuple[type[Payload], ...] = (
    TxPending,
    ApprovalVoted,
    QuorumBreak,
    TxApproved,
    TxDenied,
    TxSigned,
    TxConfirmed,
    TxFailed,
    SpendThreshold,
    PolicyViolation,
    IntentCreated,
    IntentAuthorized,
    IntentExecuted,
    IntentFailed,
    IntentRejected,
    IntentCanceled,
    IntentExpired,
    UserUnlinkedAccount,
)


def clipped(effects: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The effects that an event carries, from the first on, and the number of those that it leaves out."""
    kept = list(effects[:MAX_EFFECTS])
    # What is decoded takes a few hundred bytes. A name made to be long is the only way past that.
    while kept and len(_encode(kept)) > MAX_EFFECTS_BYTES:
        kept.pop()
    return kept, len(effects) - len(kept)
