"""The face of a type of rule. Each type is one file in `kinds/` with three structs: rule, config and terms.

The rule and its config are what callers send, and the contract is made from them. The terms are the config as it is
judged: nothing else of a type is known to the judge, the coverage, the budgets, the replay or the comparison of sets.
"""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal, Protocol, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.messages import Message
from custody.chains.types import Call, Effect, Subject
from custody.kit.described import described
from custody.kit.instants import read_instant
from custody.policies.types import CheckQuestion, Facts, InvalidPolicy, Left, PolicyId, Room, Window

type Family = str


class Wants(msgspec.Struct, frozen=True):
    """The facts that a rule looks up, so that a back-test works out no others: spend of assets, and rates.

    `totals` are those of which it looks up all that was ever spent, `recipients` those whom orders reached before.
    """

    spend: frozenset[str] = frozenset()
    totals: frozenset[str] = frozenset()
    rates: bool = False
    recipients: bool = False


class Limit(msgspec.Struct, frozen=True):
    """One rolling limit on one asset, in its smallest unit, and the percentages of it that raise an alert."""

    window: Window
    asset: str
    most: int
    alert_percents: tuple[int, ...] = ()


class Calls(Protocol):
    """A list of contract calls that are known to be harmless enough."""

    def permits(self, call: Call) -> bool:
        """Say whether a call is listed and keeps its constraints."""

    def bounds(self, call: Call, effect: Effect) -> bool:
        """Say whether a call is listed with a bound on the amount, and the effect keeps that bound."""

    def confines(self, call: Call) -> bool:
        """Say whether a call is listed with a bound on the amount and on who receives it, and keeps both."""

    def allows_unread(self, call: Call) -> bool:
        """Say whether a call is listed by an entry that says to let pass what nobody can read of it."""

    def vouches(self, subject: Subject) -> bool:
        """Say whether typed data is of a contract that is listed without constraints, and may hold what is unread."""

    def beyond(self, others: Sequence["Calls"]) -> str | None:
        """Name what is listed here and in none of the others, or None."""


class Messages(Protocol):
    """A list of messages that are known to be harmless enough."""

    def lists(self, message: Message, now: datetime) -> bool:
        """Say whether a message is listed."""

    def beyond(self, others: Sequence["Messages"]) -> str | None:
        """Say what is listed here and in none of the others, or None."""


class Covers(msgspec.Struct, frozen=True):
    """The effects that a rule can judge. Once some rule limits spend, what no enabled rule covers goes to a person.

    `recipients` says that a rule judges whom an order pays or empowers, `named` that it lists all whom it lets be paid.
    `policy_set` is a set whose rules cover what they cover.
    """

    assets: frozenset[str] = frozenset()
    calls: Calls | None = None
    recipients: bool = False
    named: bool = False
    messages: Messages | None = None
    policy_set: str | None = None


NOTHING_COVERED = Covers()
NOTHING_WANTED = Wants()


class Terms(msgspec.Struct, frozen=True):
    """A rule as it is judged. Pure: the same terms, order and facts give the same answer.

    Every type has `check` and `tightens`; the rest is for those that keep limits, cover effects or count orders.
    """

    @abstractmethod
    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order passes, and why."""

    @abstractmethod
    def tightens(self, old: Self) -> bool:
        """Say whether every order that passes these terms also passes the old ones, whatever the facts."""

    def covers(self) -> Covers:
        """Declare the effects that this rule can judge."""
        return NOTHING_COVERED

    def limits(self, family: Family) -> Sequence[Limit]:
        """The rolling limits it keeps for orders of a chain family: shown as budgets, and alerted on."""
        return ()

    def wants(self) -> Wants:
        """The facts that `check` looks up."""
        return NOTHING_WANTED

    @property
    def is_shared(self) -> bool:
        """Say whether its limits are on what all agents of a policy set spend together."""
        return False

    def room(self, facts: Facts) -> Room | None:
        """Find when an order that failed may pass unchanged; None if it is refused for more than being early."""
        return None

    def room_left(self, facts: Facts) -> Left | None:
        """Find what an order that passed leaves of the narrowest window that counts orders; None without one."""
        return None

    def only_asks(self, subject: Subject, facts: Facts) -> bool:
        """Say whether a person may decide an order that failed, though the rule refuses others."""
        return False

    def question(self, subject: Subject, facts: Facts) -> CheckQuestion | None:
        """Give what a service is to be asked about an order before it is signed."""
        return None

    def at_end(self) -> Self | None:
        """Give the terms that hold once the rule has ended; None: then nothing passes it by itself."""
        return None

    def holds(self, tighter: Self) -> bool:
        """Say whether terms that tighten these name nothing that these do not, so that they keep their author."""
        return False


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """One type's config, as sent. A field that was not sent is UNSET, so what is stored is what was sent."""

    until: Annotated[
        Annotated[str, Meta(max_length=40)] | UnsetType | None,
        described(
            "The end of the rule, a date and time with a zone. From then on a hard rule refuses every order, and a "
            "soft one has every order decided by people.",
            format="date-time",
        ),
    ] = UNSET

    @abstractmethod
    def terms(self) -> Terms:
        """The config as it is judged; InvalidPolicy where a value or two fields together make no sense."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    """One rule as callers send and receive it.

    In responses, `source` is `agent` if an agent token or an app client set the rule; if absent, the tenant set it.
    Requests may contain `source`, and it is ignored, so that a response can be sent back unchanged.
    A failing hard rule refuses; a failing soft one queues. `keeps_limits`: the terms answer `limits`.
    """

    hard: ClassVar[bool] = True
    keeps_limits: ClassVar[bool] = False

    id: Annotated[PolicyId | None, described("The rule's id; without it one is made.")] = None
    enabled: Annotated[bool, described("True if the rule is evaluated.")]
    config: Annotated[Config, described("Settings of the rule; the fields depend on `type`.")]
    source: Annotated[Literal["tenant", "agent"] | UnsetType, described("Origin of the rule. Ignored in requests.")] = (
        UNSET
    )

    @property
    def type(self) -> str:
        """The tag, as callers spell the type."""
        return type_of(self.__class__)


def type_of(rule: type[Rule]) -> str:
    """The tag by which callers name a type."""
    return str(rule.__struct_config__.tag)


def sent_or[T](sent: T | UnsetType, otherwise: T) -> T:
    """Return what was sent, or the default of the field; where null may be sent, it is the default."""
    return otherwise if sent is UNSET else sent


def moment_sent(sent: str | UnsetType | None, field: str) -> datetime | None:
    """Read a moment in UTC; None where none was sent."""
    if not sent:
        return None
    if (found := read_instant(sent)) is None:
        raise InvalidPolicy(f"`{field}` must be a date and time with a zone, such as 2027-01-31T12:00:00Z")
    return found


def at_most(new: int | None, old: int | None) -> bool:
    """Say whether a bound is no looser than an old one; None is no bound."""
    return old is None or (new is not None and new <= old)


def of_each(terms: Terms, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether every call of a batch passes by itself, and why; the first that does not is named by its number."""
    passed, reason = True, ""
    for number, part in enumerate(subject.parts, start=1):
        passed, reason = terms.check(part, facts)
        if not passed:
            return False, f"call {number}: {reason}"
    return passed, reason
