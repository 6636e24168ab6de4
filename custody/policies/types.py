"""The facts an order is judged on, and the verdict."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from custody.chains.units import NO_UNITS, Units
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import AgentId

PolicyId = AgentId
EmptyPolicy = Literal["allow", "deny"]
Uncovered = Literal["queue", "allow", "refuse"]
Decision = Literal["sign", "queue", "refuse"]
Window = Literal["day", "week"]
# Addresses tried as owners of the accounts of one order: all of it takes some milliseconds of the signer's loop.
MOST_OWNERS_TRIED = 256


class InvalidPolicy(Invalid):
    """The policy set is not valid."""


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one rule; `policyId` is null for a result of the evaluation itself."""

    type: Annotated[str, described("The type of the rule, or what the evaluation itself says.")]
    passed: Annotated[bool, described("True if the order passed.")]
    reason: Annotated[str, described("Why, for people.")]
    policy_id: Annotated[str | None, described("The rule; null for a result of the evaluation itself.")] = None


# Results as they are kept. Those of earlier versions may be without `policyId`, where it is null now.
decode_results = msgspec.json.Decoder(list[Result]).decode


class Room(msgspec.Struct, frozen=True):
    """The seconds until a full window has room for one more order, and the orders that it admits."""

    seconds: int
    limit: int


class Left(msgspec.Struct, frozen=True):
    """The rest of a window once an order counts, and the seconds until its oldest order leaves it."""

    limit: int
    remaining: int
    seconds: int


class Spend(msgspec.Struct, frozen=True):
    """The spend of one asset in the rolling 24 hours and 7 days; the hour at the edge counts in full."""

    day: int
    week: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may know beside the order itself; read by the signer, never sent by a caller.

    `spend` leaves out the nonce slot that the order takes over, and an asset without spend may be absent. `floor`
    is what that slot already counted, so an asset counts the larger of floor and order. `approving` says a person
    has approved this order: soft rules no longer queue it, hard rules judge it as ever. `minutes` and `hours` are the
    counted orders by the start of their minute and hour, in seconds since 1970: a refusal says from them when to retry.
    `units` are for sentences alone. `owners_tried` bounds the work of one rule. `votes` are those that were verified,
    by person and fingerprint of the key: a rule counts the ones whose key it names.
    """

    now: datetime
    spend: Mapping[str, Spend] = {}
    floor: Mapping[str, int] = {}
    orders_last_hour: int = 0
    orders_last_day: int = 0
    minutes: Sequence[tuple[int, int]] = ()
    hours: Sequence[tuple[int, int]] = ()
    empty_policy: EmptyPolicy = "allow"
    uncovered: Uncovered = "queue"
    units: Units = NO_UNITS
    approving: bool = False
    owners_tried: int = MOST_OWNERS_TRIED
    votes: Set[tuple[str, str]] = frozenset()


class Alert(msgspec.Struct, frozen=True):
    """A `spend.threshold` that signing this order crosses; `spent` includes the order."""

    window: Window
    asset: str
    spent: int
    limit: int
    percent: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision over one order, and why.

    `charges` is what the order counts as spend once it is signed; a queued order holds no budget. `room` is there if
    only rate limits refuse it: of these the one that has room last.
    """

    decision: Decision
    results: tuple[Result, ...]
    charges: dict[str, int]
    room: Room | None = None
    alerts: tuple[Alert, ...] = ()
