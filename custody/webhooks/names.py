"""The events that an endpoint may subscribe to: the one list, which needs no payload to be known."""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from custody.kit.errors import Invalid

Subscribable = Literal[
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
]
SUBSCRIBABLE: Final[tuple[str, ...]] = get_args(Subscribable)
# Sent on request alone; nobody subscribes to it.
TEST: Final = "webhook.test"


class UnknownEvent(Invalid):
    """Unknown event."""


def in_order(events: Iterable[str] | None) -> list[str] | None:
    """Events once each, in the order of the list above; UnknownEvent for another. None stays: every one there is."""
    if events is None:
        return None
    given = set(events)
    if unknown := sorted(given.difference(SUBSCRIBABLE)):
        raise UnknownEvent(f"events: {unknown[0][:64]!r} is not one of {', '.join(SUBSCRIBABLE)}.", fields=["events"])
    return [name for name in SUBSCRIBABLE if name in given]


def is_subscribed(events: list[str] | None, event: str) -> bool:
    """Say whether an endpoint with these events takes this one; None: every one there is, later ones too."""
    return event != TEST and (events is None or event in events)
