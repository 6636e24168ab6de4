"""The payloads of what comes after an order was judged: votes, a person's no, and what its chain made of it."""

from typing import Annotated, ClassVar, Literal

from custody.kit.described import Id, Instant, described
from custody.webhooks.events import OrderEvent
from custody.webhooks.payload import Payload


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


class TxDenied(OrderEvent, frozen=True, kw_only=True):
    """A person denied an order, its agent withdrew it, or its time was up."""

    event: ClassVar[str] = "tx.denied"
    approval_id: Annotated[Id, described("The approval.")]
    reason: Annotated[str | None, described("The reason that was given.")]
    resolved_by: Annotated[
        Literal["manual", "agent", "system"],
        described("A person or key (`manual`), the agent itself, or the service because the time was up (`system`)."),
    ]


class BreakerTripped(Payload, frozen=True, kw_only=True):
    """A rule `circuit-breaker` froze the agent."""

    event: ClassVar[str] = "breaker.tripped"
    policy_id: Annotated[str, described("The rule.")]
    reason: Annotated[str, described("What was counted, for people.")]
    tx_id: Annotated[Id, described("The transaction that reached the number.")]


class TxConfirmed(OrderEvent, frozen=True, kw_only=True):
    """A chain executed an order, so deep that it stays."""

    event: ClassVar[str] = "tx.confirmed"
    tx_hash: Annotated[str | None, described("The hash, or on Solana the signature; of a payment that of who took it.")]
    block: Annotated[int | None, described("The block that has it, or on Solana the slot.")]
    block_hash: Annotated[str | None, described("The block's hash; null on Solana.")]


class TxFailed(OrderEvent, frozen=True, kw_only=True):
    """An order was signed and can have no effect any more."""

    event: ClassVar[str] = "tx.failed"
    tx_hash: Annotated[str | None, described("The hash, or on Solana the signature; of a payment that of who took it.")]
    reason: Annotated[
        str,
        described(
            "Why: `execution_reverted`, `replaced`, `blockhash_expired`, `authorization_expired` or "
            "`authorization_canceled`."
        ),
    ]
    block: Annotated[int | None, described("The block or slot that shows it.")]
    block_hash: Annotated[str | None, described("The block's hash; null on Solana.")]
    taken_by: Annotated[str | None, described("The hash that took its nonce, if it is one of this wallet's.")]
