"""The names of events that the service had when this was written; a newer one may know more."""

from typing import Final

EVENTS: Final = (
    "tx.pending",
    "approval.voted",
    "quorum.broken",
    "tx.approved",
    "tx.denied",
    "tx.signed",
    "tx.confirmed",
    "tx.failed",
    "spend.threshold",
    "policy.violation",
    "agent.frozen",
    "agent.unfrozen",
    "tenant.frozen",
    "tenant.unfrozen",
    "policies.changed",
    "breaker.tripped",
    "intent.created",
    "intent.authorized",
    "intent.executed",
    "intent.failed",
    "intent.rejected",
    "intent.canceled",
    "intent.expired",
    "user.unlinked_account",
)
