"""The facts an order is judged on, and the verdict."""

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from custody.chains.units import NO_UNITS, Units
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import AgentId, Digest

PolicyId = AgentId
EmptyPolicy = Literal["allow", "deny"]
Uncovered = Literal["queue", "allow", "refuse"]
Decision = Literal["sign", "queue", "refuse"]
Window = Literal["day", "week", "total"]
# Whom an order reaches: `paid`, `empowered` or `called`, and the address behind its chain.
type Recipient = tuple[str, str]
# Addresses tried as owners of the accounts of one order: all of it takes some milliseconds of the signer's loop.
MOST_OWNERS_TRIED = 256
# Bytes of what a service answers, and services that are asked about one order.
MOST_ANSWER = 2_048
MOST_CHECKS = 3


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
    """The spend of one asset in the rolling 24 hours and 7 days, whose hour at the edge counts in full, and ever.

    `total` is known only where a rule limits it.
    """

    day: int
    week: int
    total: int = 0

    def within(self, window: Window) -> int:
        """The spend that a window counts."""
        return self.day if window == "day" else self.week if window == "week" else self.total


class CheckQuestion(msgspec.Struct, frozen=True):
    """A question about an order for a service: where it is asked, the body of the request, and how long it has."""

    url: str
    body: bytes
    seconds: int


class CheckAnswer(msgspec.Struct, frozen=True):
    """An answer as it came, and which question it is for, by its SHA-256 in hex. Nothing of it is believed yet."""

    question: Digest
    body: Annotated[bytes, msgspec.Meta(max_length=MOST_ANSWER)]
    signature: Annotated[bytes, msgspec.Meta(max_length=64)]


def verify_nothing(key: bytes, signature: bytes, content: bytes) -> bool:
    """Believe no signature: for one that judges without answers."""
    return False


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may know beside the order itself; read by the signer, never sent by a caller.

    `spend` leaves out the nonce slot that the order takes over, and an asset without spend may be absent. `floor`
    is what that slot already counted, so an asset counts the larger of floor and order. `approving` says a person
    has approved this order: soft rules no longer queue it, hard rules judge it as ever. `minutes` and `hours` are the
    counted orders by the start of their minute and hour, in seconds since 1970: a refusal says from them when to retry.
    `worth` is what the order moves in millionths of a dollar, by the name of each asset that has a price; one that has
    none is not there. `units` are for sentences alone. `owners_tried` bounds the work of one rule. `votes` are those
    that were verified, by person and fingerprint of the key: a rule counts the ones whose key it names. `recipients`:
    whom orders of this agent reached before that a person approved; known where a rule wants them.
    `waited` are the seconds since it was asked for, of an order that nobody decided.
    `order` names it by tenant, agent and transaction, and `answers` are what services said of it; None: none was asked.
    `verify` says whether an Ed25519 signature by a key is good: rules themselves need no library.
    """

    now: datetime
    spend: Mapping[str, Spend] = {}
    floor: Mapping[str, int] = {}
    worth: Mapping[str, int] = {}
    orders_last_hour: int = 0
    orders_last_day: int = 0
    minutes: Sequence[tuple[int, int]] = ()
    hours: Sequence[tuple[int, int]] = ()
    empty_policy: EmptyPolicy = "allow"
    uncovered: Uncovered = "queue"
    units: Units = NO_UNITS
    # By policy set: what all of its agents spent, of the assets that it limits for all together.
    shared: Mapping[str, Mapping[str, Spend]] = {}
    approving: bool = False
    owners_tried: int = MOST_OWNERS_TRIED
    votes: Set[tuple[str, str]] = frozenset()
    recipients: Set[Recipient] = frozenset()
    waited: int = 0
    order: tuple[str, str, str] = ("", "", "")
    answers: Sequence[CheckAnswer] | None = None
    verify: Callable[[bytes, bytes, bytes], bool] = verify_nothing


class Alert(msgspec.Struct, frozen=True):
    """A `spend.threshold` that signing this order crosses; `spent` includes the order."""

    window: Window
    asset: str
    spent: int
    limit: int
    percent: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision over one order, and why.

    `charges` is what the order counts as spend once it is signed; a queued order holds no budget. `refused_by` is the
    first that refuses: what would only ask a person may have failed before it. `room` is there if only rate limits
    refuse it: of these the one that has room last.
    """

    decision: Decision
    results: tuple[Result, ...]
    refused_by: Result | None = None
    charges: dict[str, int]
    room: Room | None = None
    alerts: tuple[Alert, ...] = ()
