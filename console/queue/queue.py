"""The items that wait for a person, kept true against a list that changes while it is read. Pure.

Between two pages items come in front and others leave. A sweep reads page by page with the service's cursors, which
give everything that waited all the time, so it may conclude that what it did not see waits no more.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Literal

from words.orders.dangers import is_unreadable
from words.orders.order import Known, of_approval
from words.orders.phrases import is_unlimited
from words.orders.votes import brief
from words.orders.words import summary
from words.shapes import Approval
from words.texts.amounts import human, quote, whole
from words.texts.chains import BTC, CHAINS, ETH, SOL, Coin, chain_of
from words.texts.moments import clock, moment, span

PAGE: Final = 200
# A list without an end is not read for ever, and a console that stays open does not remember all that ever ended.
MOST_WAITING: Final = 100_000
MOST_ENDED: Final = 10_000
# What is listed as pending so long after its end is so because our clock is wrong: no answer is on its way for longer.
LATE: Final = timedelta(minutes=2)
_COIN_DECIMALS: Final = 18
_REASON_CHARACTERS: Final = 120
_NAME_CHARACTERS: Final = 60
_NOTHING: Final = Known()

Word = Literal["approved", "denied", "expired", "gone"]
# What a person says with a decision.
SAID: Final[dict[str, str]] = {"approved": "Comment", "denied": "Reason"}
WORDS: Final[dict[str, Word]] = {"approved": "approved", "rejected": "denied", "expired": "expired"}


@dataclass(frozen=True)
class Outcome:
    """The end of an item: `gone` while nobody has said what, `guessed` where only our clock says so."""

    word: Word
    at: datetime | None = None
    by: str = ""
    reason: str = ""
    tx_hash: str = ""
    note: str = ""
    guessed: bool = False

    def tells_more_than(self, other: "Outcome") -> bool:
        """Tell if this is worth knowing beside that: the decision, or by whom; never another decision."""
        if other.word == "gone" or (other.guessed and not self.guessed):
            return self.word != "gone"
        return self.word == other.word and bool(self.by) and not other.by

    @property
    def wants_a_name(self) -> bool:
        """True if the service can tell more: who decided, or what it was where we only guessed."""
        return self.guessed or (not self.by and self.word != "expired")

    @property
    def sentence(self) -> str:
        """The same for a person."""
        if self.word == "gone":
            return "This is no longer pending; its outcome is not known yet."
        by = f" by {self.by}" if self.by else ""
        at = f" at {clock(self.at)}" if self.at else ""
        said = f"{self.word.capitalize()}{by}{at}."
        if self.reason and self.word in SAID:
            said += f" {SAID[self.word]}: {quote(self.reason, _REASON_CHARACTERS)}."
        said += f" Transaction {self.tx_hash}." if self.tx_hash else ""
        return f"{said} {self.note}".rstrip()

    @property
    def briefly(self) -> str:
        """The same in passing."""
        return f"{self.word.capitalize()} by {self.by}." if self.by else f"{self.word.capitalize()}."


@dataclass(frozen=True)
class Item:
    """One item, and what became of it if it is decided; `clock_is_wrong` where the service says that it still waits."""

    approval: Approval
    outcome: Outcome | None = None
    clock_is_wrong: bool = False

    @property
    def id(self) -> str:
        return self.approval.id

    @cached_property
    def asked(self) -> datetime | None:
        """Since when it waits."""
        return moment(self.approval.requested_at)

    @cached_property
    def expires(self) -> datetime | None:
        """Until when it waits; None is for ever."""
        return moment(self.approval.expires_at)

    @cached_property
    def coin(self) -> Coin:
        """Unit of its native amount."""
        chain = CHAINS.get(self.approval.chain_id or 0)
        return chain.coin if chain else {"bitcoin": BTC, "solana": SOL}.get(self.approval.kind, ETH)

    @cached_property
    def native(self) -> int:
        """Amount of the chain's own coin that leaves, in its smallest unit."""
        moved = sum(
            whole(one.amount) or 0
            for one in self.approval.effects
            if one.kind == "transfer" and (one.asset == "bitcoin" or (one.asset or "").endswith(":native"))
        )
        return max(moved, whole(self.approval.value) or 0)

    @cached_property
    def size(self) -> float:
        """The native amount, comparable among chains; without end where it has no bound, or none is known."""
        if any(effect.unread or is_unlimited(effect) for effect in self.approval.effects):
            return float("inf")
        return int(self.native * 10 ** (_COIN_DECIMALS - self.coin.decimals))

    @cached_property
    def summary(self) -> str:
        """Its request, in one line of the list."""
        return summary(of_approval(self.approval), _NOTHING)

    @cached_property
    def is_grave(self) -> bool:
        """True if it gives away more than can be said: without a bound, or in bytes that nobody could decode."""
        return self.summary.startswith("UNLIMITED") or is_unreadable(of_approval(self.approval))

    @property
    def voted(self) -> str:
        """Votes given of votes needed, for the list; empty where nobody's vote is asked for."""
        votes = self.approval.votes
        return f"{brief(votes)}, " if votes is not None and self.outcome is None else ""

    @cached_property
    def text(self) -> str:
        """Text that a search looks through, in lower case."""
        one = self.approval
        parts = [one.agent_name, one.agent_id, one.to_address, one.value, one.id, one.tx_id, one.reason, one.status]
        parts += [one.reference_id, one.resolved_by_name, one.comment]
        parts += [self.summary, human(self.native, self.coin.decimals), chain_of(one.kind, one.chain_id)]
        for effect in one.effects:
            parts += [effect.to, effect.spender, effect.asset, effect.label, effect.amount]
        return "\n".join(part for part in parts if part).lower()

    def prepare(self) -> "Item":
        """The same, with what a search and an order ask of it worked out: ten thousand at once would be felt."""
        _ = self.text, self.size
        return self

    def is_due(self, now: datetime) -> bool:
        """Tell whether its time is up."""
        return not self.clock_is_wrong and self.expires is not None and self.expires <= now

    def until(self, now: datetime) -> str:
        """Tell how long it still waits, after "it"."""
        if self.expires is None:
            return "never expires"
        if self.expires <= now and self.clock_is_wrong:
            return "pending by the service's clock, expired by this machine's"
        return f"expires in {span(self.expires - now)}"


def outcome_of(approval: Approval, me: str | None = None) -> Outcome | None:
    """Read the outcome of an item from the list; None while it waits."""
    word = WORDS.get(approval.status)
    if word is None:
        return None
    by = "" if word == "expired" else decider(approval, me)
    at = moment(approval.resolved_at if word != "expired" else approval.resolved_at or approval.expires_at)
    return Outcome(word, at, by, (approval.comment if word == "approved" else approval.reason) or "")


def decider(approval: Approval, me: str | None) -> str:
    """Name the decider: a person by name while the tenant knows one, else by id."""
    if user := approval.resolved_by_user_id:
        if user == me:
            return "you"
        # In quotes, or somebody could be called "you".
        return quote(approval.resolved_by_name, _NAME_CHARACTERS) if approval.resolved_by_name else f"user {user}"
    if approval.resolved_by == "agent":
        return "its own agent, which withdrew it"
    if approval.resolved_by == "system":
        return "nobody: its delay was over"
    return "a holder of the tenant key" if approval.resolved_by == "manual" else approval.resolved_by or ""


@dataclass
class Queue:
    """The items that wait, by id, and what became of those that waited."""

    items: dict[str, Item] = field(default_factory=dict)
    ended: dict[str, Outcome] = field(default_factory=dict)
    # Whether everything was seen at least once, and how many the API said there are, or are at least.
    whole: bool = False
    total: int = 0
    at_least: bool = False
    # Whether there are more than this console reads.
    more: bool = False
    # One item that is shown stays in its place after its end, until the person has moved on.
    kept: Item | None = None
    # More than so many are not read.
    most: int = MOST_WAITING
    _began: bool = False

    @property
    def waiting(self) -> int:
        """Number of items that wait."""
        return len(self.items) if self.whole else max(self.total, len(self.items) + self.more)

    def rows(self) -> list[Item]:
        """Return the items to show, in no order."""
        kept = self.kept
        return (
            [*self.items.values(), kept] if kept is not None and kept.id not in self.items else [*self.items.values()]
        )

    def find(self, key: str) -> Item | None:
        """An item that is shown."""
        return self.items.get(key) or (self.kept if self.kept is not None and self.kept.id == key else None)

    def keep(self, item: Item | None) -> bool:
        """This one is looked at: it stays until another is. True if one that has ended goes with that."""
        before, self.kept = self.kept, None if item is None else self.latest(item)
        return before is not None and before.id not in self.items and (item is None or item.id != before.id)

    def merge_first(self, page: Sequence[Approval], total: int, now: datetime, *, at_least: bool = False) -> list[Item]:
        """Take the newest items as the API has them; gives those that are new to a person who was watching."""
        self.total, self.at_least = total, at_least
        came = self._take(page, now)
        ids = {one.id for one in page}
        everything = len(page) < PAGE
        last = Item(page[-1]).asked if page else None
        for key, item in list(self.items.items()):
            if key not in ids and (everything or (last and item.asked and item.asked > last)):
                self.end(key, Outcome("gone"))
        if everything:
            self.whole, self.more = True, False
        began, self._began = self._began, True
        return came if began else []

    def merge_sweep(self, page: Sequence[Approval], now: datetime) -> None:
        """Take a page from further down."""
        full = len(self.items) >= self.most
        self._take([one for one in page if one.id in self.items] if full else page, now)

    def conclude(self, sweep: "Sweep") -> None:
        """A sweep is through: what it did not meet waits no more, unless it was cut short."""
        self.more = sweep.cut or len(self.items) >= self.most
        self.whole = not self.more
        for key in () if sweep.cut else sweep.unmet():
            if key in self.items:
                self.end(key, Outcome("gone"))

    @property
    def differs(self) -> bool:
        """True if the API counts otherwise, so that something further down must have changed."""
        return len(self.items) < self.total if self.at_least else len(self.items) != self.total

    def end(self, key: str, outcome: Outcome) -> bool:
        """Something became of an item. True if that is news."""
        before = self.ended.get(key)
        if before is not None and not outcome.tells_more_than(before):
            return False
        self.ended.pop(key, None)
        self.ended[key] = outcome
        if len(self.ended) > MOST_ENDED:
            del self.ended[next(iter(self.ended))]
        item = self.items.pop(key, None)
        if self.kept is not None and self.kept.id == key:
            self.kept = Item(self.kept.approval, outcome)
        return item is not None or before is not None

    def expire(self, now: datetime) -> bool:
        """End what is due. True if there was any."""
        due = [item for item in self.items.values() if item.is_due(now)]
        for item in due:
            self.end(item.id, Outcome("expired", item.expires, guessed=True))
        return bool(due)

    def latest(self, item: Item) -> Item:
        """An item as it is known now."""
        ended = self.ended.get(item.id)
        if ended is not None and ended.guessed and item.outcome is not None:
            # What the service has told of it is no guess.
            ended = None
        return self.items.get(item.id) or (Item(item.approval, ended) if ended else item)

    def _take(self, page: Iterable[Approval], now: datetime) -> list[Item]:
        came = []
        for approval in page:
            known, ended = self.items.get(approval.id), self.ended.get(approval.id)
            item = Item(approval)
            if item.is_due(now - LATE):
                item = Item(approval, clock_is_wrong=True)
            if ended is not None and ended.word != "gone" and not (ended.guessed and not item.is_due(now)):
                # An answer that was on its way when the item was decided; what is decided stays so.
                continue
            if item == known:
                continue
            if item.is_due(now):
                self.end(approval.id, Outcome("expired", item.expires, guessed=True))
                continue
            self.ended.pop(approval.id, None)
            self.items[approval.id] = item.prepare()
            if self.kept is not None and self.kept.id == approval.id:
                self.kept = item
            if known is None and ended is None:
                came.append(item)
        return came


class Sweep:
    """One way through all pages: where the next one begins, and what was met."""

    def __init__(self, before: Collection[str] = (), most: int = MOST_WAITING) -> None:
        self._most = most
        self._before = frozenset(before)
        self._met: set[str] = set()
        self._pages = 0
        self.cursor: str | None = None
        self.done = False
        # Whether it ended before the list did.
        self.cut = False

    def take(self, ids: Sequence[str], cursor: str | None) -> None:
        """The page at `cursor` has these, and names where the next begins."""
        self._pages += 1
        self._met.update(ids)
        self.cursor, self.done = cursor, cursor is None
        if not self.done and self._pages >= self._most // PAGE:
            self.done = self.cut = True

    def unmet(self) -> frozenset[str]:
        """Return the items that waited before the sweep began and were not met."""
        return self._before - self._met
