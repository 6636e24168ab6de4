"""Judge past requests in their order by other rules, with spend and rate as they would have been. Pure. Decision 0030.

Windows are the ledger's: spend by the hour, rate by the minute and by the hour, the bucket at the edge in full. A slot
counts once, at its largest. A person is taken to decide as they did: what was signed in the end is approved at the
moment at which it was signed, and nothing else is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from api.areas.simulation.past import Past
from api.areas.simulation.types import Changed
from custody.chains.units import Units
from custody.policies.judge import judge
from custody.policies.kinds.new_recipient import recipients_of
from custody.policies.moved import charge
from custody.policies.rules import ParsedRule
from custody.policies.types import MOST_OWNERS_TRIED, EmptyPolicy, Facts, Recipient, Spend, Uncovered, Verdict

_DAY, _WEEK = 24, 168
# As the signer has it: an approved order no longer counts against itself while it surely is in the window.
_SURELY_THIS_HOUR, _SURELY_TODAY = timedelta(minutes=59), timedelta(hours=23)
# By the number of the hour, or of the minute, since 1970.
Buckets = Counter[int]
_NONE: Buckets = Counter()


class Event(msgspec.Struct, frozen=True):
    """A request that is asked, or one that a person approves."""

    at: datetime
    kind: Literal["asked", "approved"]
    past: Past


class Ledger:
    """Spend and rate at any moment of a replay."""

    def __init__(self, spend: Mapping[str, Buckets]) -> None:
        """Begin with the spend that is known to count beside the requests that are replayed."""
        self.spend = {asset: Counter(buckets) for asset, buckets in spend.items()}
        self._minutes: Buckets = Counter()
        self._hours: Buckets = Counter()
        self._slots: dict[str, dict[str, tuple[int, int]]] = {}

    def count(self, at: datetime) -> None:
        """One more order that was signed or queued."""
        self._minutes[minute_of(at)] += 1
        self._hours[hour_of(at)] += 1

    def floor(self, past: Past) -> dict[str, int]:
        """Count what the slot that this order takes over spends already."""
        slot = self._slots.get(past.replaces or "", {})
        return {asset: amount for asset, (amount, _) in slot.items()}

    def sign(self, past: Past, at: datetime) -> None:
        """Count a signature, in the hour of its moment, less what its slot counted before."""
        hour, slot = hour_of(at), dict(self._slots.get(past.replaces or "", {}))
        charges = charge(past.moved, self.floor(past))
        for asset, (amount, before) in slot.items():
            self.spend[asset][before] -= amount
        for asset, amount in charges.items():
            if amount:
                self.spend.setdefault(asset, Counter())[hour] += amount
                slot[asset] = (amount, hour)
        self._slots[past.id] = slot

    def spent_in(self, asset: str, hour: int) -> int:
        """Sum up what one hour counts."""
        return self.spend.get(asset, _NONE)[hour]

    def sum_spend(self, asset: str, past: Past, at: datetime, *, ever: bool = False) -> Spend:
        """Sum up what counts in both windows, and ever, without the slot that this order takes over."""
        hour = hour_of(at)
        buckets = self.spend.get(asset)
        if buckets is None:
            return Spend(0, 0)
        amount, placed = self._slots.get(past.replaces or "", {}).get(asset, (0, hour))
        in_day = _sum(buckets, hour - _DAY, hour)
        in_week = in_day + _sum(buckets, hour - _WEEK, hour - _DAY - 1)
        total = sum(spent for number, spent in buckets.items() if number <= hour) - amount if ever else 0
        return Spend(in_day - amount * (placed >= hour - _DAY), in_week - amount * (placed >= hour - _WEEK), total)

    def orders(self, at: datetime) -> tuple[int, int]:
        """Orders in the last hour and day."""
        minute, hour = minute_of(at), hour_of(at)
        return _sum(self._minutes, minute - 60, minute), _sum(self._hours, hour - _DAY, hour)


def _sum(buckets: Buckets, first: int, last: int) -> int:
    get = buckets.get
    return sum(get(number, 0) for number in range(first, last + 1))


def hour_of(at: datetime) -> int:
    """The number of an hour."""
    return int(at.timestamp()) // 3600


def minute_of(at: datetime) -> int:
    """The number of a minute."""
    return int(at.timestamp()) // 60


class Replay:
    """One back-test: events go in, in order; what was decided otherwise comes out."""

    def __init__(
        self,
        rules: Sequence[ParsedRule],
        ledger: Ledger,
        since: datetime,
        empty: EmptyPolicy,
        uncovered: Uncovered,
        units: Units,
    ) -> None:
        self._rules, self._ledger, self._since, self._units = rules, ledger, since, units
        self._empty: EmptyPolicy = empty
        self._uncovered: Uncovered = uncovered
        # Nothing else is ever looked up by a rule.
        wanted = [rule.terms.wants() for rule in rules if rule.enabled]
        self._assets = frozenset[str]().union(*(wants.spend for wants in wanted))
        self._summed = frozenset[str]().union(*(wants.totals for wants in wanted))
        self._rated = any(wants.rates for wants in wanted)
        # As where such a rule is new: known is whom an order reached that a person approves here.
        self._reaching = any(wants.recipients for wants in wanted)
        self._reached: set[Recipient] = set()
        self._waiting: set[str] = set()
        self.examined = 0
        self.changed: list[Changed] = []

    def take(self, events: Iterable[Event]) -> None:
        """Replay some events."""
        for event in events:
            if event.past.asked_at <= self._since:
                count(self._ledger, event)
                if event.kind == "approved":
                    self._meet(event.past)
            elif event.kind == "asked":
                self._ask(event.past, event.at)
            else:
                self._approve(event.past, event.at)

    def _ask(self, past: Past, at: datetime) -> None:
        verdict = self._judge(past, at, approving=False)
        self.examined += 1
        if verdict.decision != past.was:
            self.changed.append(Changed(past.id, past.was, verdict.decision, list(verdict.results)))
        if verdict.decision == "refuse":
            return
        self._ledger.count(at)
        if verdict.decision == "sign":
            self._ledger.sign(past, at)
        elif past.was == "sign":
            self._approve(past, at)
        else:
            self._waiting.add(past.id)

    def _approve(self, past: Past, at: datetime) -> None:
        if past.was == "queue" and past.id not in self._waiting:
            return  # It never waited under these rules: signed at once, or refused.
        if self._judge(past, at, approving=True).decision == "sign":
            self._ledger.sign(past, at)
            self._meet(past)

    def _meet(self, past: Past) -> None:
        if self._reaching:
            self._reached.update(recipients_of(past.subject, self._reached, MOST_OWNERS_TRIED)[0])

    def _judge(self, past: Past, at: datetime, *, approving: bool) -> Verdict:
        in_hour, in_day = self._ledger.orders(at) if self._rated else (0, 0)
        age = at - past.asked_at
        facts = Facts(
            now=at,
            spend={
                asset: self._ledger.sum_spend(asset, past, at, ever=asset in self._summed) for asset in self._assets
            },
            floor=self._ledger.floor(past),
            worth=past.worth,
            orders_last_hour=in_hour - (1 if approving and age < _SURELY_THIS_HOUR else 0),
            orders_last_day=in_day - (1 if approving and age < _SURELY_TODAY else 0),
            empty_policy=self._empty,
            uncovered=self._uncovered,
            units=self._units,
            approving=approving,
            recipients=self._reached,
        )
        return judge(self._rules, past.subject, facts)


def events_of(requests: Iterable[Past]) -> list[Event]:
    """Everything that happened, in the order in which it did."""
    found = []
    for past in requests:
        found.append(Event(past.asked_at, "asked", past))
        if past.was == "queue" and past.signed_at is not None:
            found.append(Event(past.signed_at, "approved", past))
    return sorted(found, key=lambda event: event.at)


def count(ledger: Ledger, event: Event) -> None:
    """Count an event as it was really decided."""
    past = event.past
    if event.kind == "asked" and past.was != "refuse":
        ledger.count(event.at)
    if event.kind == "approved" or past.was == "sign":
        ledger.sign(past, event.at)


def beside(known: Ledger, events: Iterable[Event]) -> Ledger:
    """The spend there is, less what these events count in it: what else counted, from before or from elsewhere."""
    real = Ledger({})
    for event in events:
        count(real, event)
    return Ledger(
        {
            asset: Counter(
                {at: more for at, spent in buckets.items() if (more := spent - real.spent_in(asset, at)) > 0}
            )
            for asset, buckets in known.spend.items()
        }
    )
