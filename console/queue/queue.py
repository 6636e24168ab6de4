"""What waits for a person, kept true against a list that changes while it is read. Pure.

The API pages by offset, and between two pages items come in front and others leave. So a sweep overlaps its pages, and
goes a page back when nothing of the next one is known: only then has it seen everything that waited all the time, and
may conclude that what it did not see waits no more.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final, Literal

from console.orders.order import Known, of_approval
from console.orders.phrases import unlimited
from console.orders.words import summary
from console.texts.amounts import quoted, whole
from console.texts.chains import BTC, CHAINS, ETH, SOL, Coin, chain_name
from console.texts.moments import clock, moment
from console.wire.shapes import Approval

PAGE: Final = 200
# So many may leave between two pages before a sweep has to go back.
OVERLAP: Final = 20
_COIN_DECIMALS: Final = 18
_REASON_CHARACTERS: Final = 120
_NOTHING: Final = Known()

Word = Literal["approved", "denied", "expired", "gone"]
WORDS: Final[dict[str, Word]] = {"approved": "approved", "rejected": "denied", "expired": "expired"}


@dataclass(frozen=True)
class Outcome:
    """What became of an item: `gone` while nobody has said what."""

    word: Word
    at: datetime | None = None
    by: str = ""
    reason: str = ""
    tx_hash: str = ""
    note: str = ""

    def tells_more_than(self, other: "Outcome") -> bool:
        """Whether this is worth knowing beside that: what was decided, or by whom; never another decision."""
        if other.word == "gone":
            return self.word != "gone"
        return self.word == other.word and bool(self.by) and not other.by

    @property
    def sentence(self) -> str:
        """The same for a person."""
        if self.word == "gone":
            return "This waits no longer; what became of it is not known yet."
        by = f" by {self.by}" if self.by else ""
        at = f" at {clock(self.at)}" if self.at else ""
        said = f"{self.word.capitalize()}{by}{at}."
        said += f" Reason: {quoted(self.reason, _REASON_CHARACTERS)}." if self.reason and self.word == "denied" else ""
        said += f" Transaction {self.tx_hash}." if self.tx_hash else ""
        return f"{said} {self.note}".rstrip()

    @property
    def briefly(self) -> str:
        """The same in passing."""
        return f"{self.word.capitalize()} by {self.by}." if self.by else f"{self.word.capitalize()}."


@dataclass(frozen=True)
class Item:
    """One item, and what became of it if it is decided."""

    approval: Approval
    outcome: Outcome | None = None

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
        """What its native amount is counted in."""
        chain = CHAINS.get(self.approval.chain_id or 0)
        return chain.coin if chain else {"bitcoin": BTC, "solana": SOL}.get(self.approval.kind, ETH)

    @cached_property
    def native(self) -> int:
        """How much of a chain's own coin leaves, in its smallest unit."""
        moved = sum(
            whole(one.amount) or 0
            for one in self.approval.effects
            if one.kind == "transfer" and (one.asset == "bitcoin" or (one.asset or "").endswith(":native"))
        )
        return max(moved, whole(self.approval.value) or 0)

    @property
    def size(self) -> float:
        """The native amount, comparable among chains; without end where it has no bound, or none is known."""
        if any(effect.kind == "opaque" or unlimited(effect) for effect in self.approval.effects):
            return float("inf")
        return int(self.native * 10 ** (_COIN_DECIMALS - self.coin.decimals))

    @cached_property
    def summary(self) -> str:
        """What it asks for, in one line of the list."""
        return summary(of_approval(self.approval), _NOTHING)

    @cached_property
    def text(self) -> str:
        """What a search looks through, in lower case."""
        one = self.approval
        parts = [one.agent_name, one.agent_id, one.to_address, one.value, one.id, one.tx_id, one.reason, one.status]
        parts += [self.summary, chain_name(one.chain_id)]
        for effect in one.effects:
            parts += [effect.to, effect.spender, effect.asset, effect.label, effect.amount]
        return "\n".join(part for part in parts if part).lower()

    def is_due(self, now: datetime) -> bool:
        """Whether its time is up."""
        return self.expires is not None and self.expires <= now


def outcome_of(approval: Approval, me: str | None = None) -> Outcome | None:
    """What became of an item as the list tells it; None while it waits."""
    word = WORDS.get(approval.status)
    if word is None:
        return None
    by = "nobody in time" if word == "expired" else decider(approval.resolved_by, approval.resolved_by_user_id, me)
    at = moment(approval.resolved_at if word != "expired" else approval.resolved_at or approval.expires_at)
    return Outcome(word, at, "" if word == "expired" else by, approval.reason or "")


def decider(resolved_by: str | None, user: str | None, me: str | None) -> str:
    """Who decided."""
    if user:
        return "you" if user == me else f"user {user}"
    return "the holder of the tenant key" if resolved_by == "manual" else resolved_by or ""


@dataclass
class Queue:
    """The items that wait, by id, and what became of those that waited."""

    items: dict[str, Item] = field(default_factory=dict)
    ended: dict[str, Outcome] = field(default_factory=dict)
    # Whether everything was seen at least once, and how many the API said there are.
    whole: bool = False
    total: int = 0
    # One item that is shown stays in its place after its end, until the person has moved on.
    kept: Item | None = None
    _known: set[str] = field(default_factory=set)
    _began: bool = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self.items) if self.whole else max(self.total, len(self.items))

    def listed(self) -> list[Item]:
        """What is to be shown, in no order."""
        kept = self.kept
        return (
            [*self.items.values(), kept] if kept is not None and kept.id not in self.items else [*self.items.values()]
        )

    def find(self, key: str) -> Item | None:
        """An item that is shown."""
        return self.items.get(key) or (self.kept if self.kept is not None and self.kept.id == key else None)

    def keep(self, item: Item | None) -> bool:
        """This one is looked at: it stays until another is. True if one that has ended goes with that."""
        before, self.kept = self.kept, None if item is None else self._now(item)
        return before is not None and before.id not in self.items and (item is None or item.id != before.id)

    def merge_first(self, page: Sequence[Approval], total: int, now: datetime) -> list[Item]:
        """Take the newest items as the API has them; gives those that are new to a person who was watching."""
        self.total = total
        came = self._take(page, now)
        ids = {one.id for one in page}
        everything = len(page) < PAGE
        last = Item(page[-1]).asked if page else None
        for key, item in list(self.items.items()):
            if key not in ids and (everything or (last and item.asked and item.asked > last)):
                self.end(key, Outcome("gone"))
        self.whole = self.whole or everything
        began, self._began = self._began, True
        return came if began else []

    def merge_sweep(self, page: Sequence[Approval], now: datetime) -> None:
        """Take a page from further down."""
        self._take(page, now)

    def conclude(self, sweep: "Sweep") -> None:
        """A sweep is through: what it did not meet waits no more."""
        for key in sweep.missed():
            if key in self.items:
                self.end(key, Outcome("gone"))
        self.whole = True

    @property
    def differs(self) -> bool:
        """Whether the API counts otherwise, so that something further down must have changed."""
        return len(self.items) != self.total

    def end(self, key: str, outcome: Outcome) -> bool:
        """Something became of an item. True if that is news."""
        before = self.ended.get(key)
        if before is not None and not outcome.tells_more_than(before):
            return False
        self.ended[key] = outcome
        self._known.add(key)
        item = self.items.pop(key, None)
        if self.kept is not None and self.kept.id == key:
            self.kept = Item(self.kept.approval, outcome)
        return item is not None or before is not None

    def expire(self, now: datetime) -> bool:
        """End what is due. True if there was any."""
        due = [key for key, item in self.items.items() if item.expires is not None and item.expires <= now]
        for key in due:
            self.end(key, Outcome("expired", self.items[key].expires))
        return bool(due)

    def _take(self, page: Iterable[Approval], now: datetime) -> list[Item]:
        came = []
        for approval in page:
            ended = self.ended.get(approval.id)
            if ended is not None and ended.word != "gone":
                # An answer that was on its way when the item was decided; what is decided stays so.
                continue
            known = self.items.get(approval.id)
            if known is None or known.approval != approval:
                item = Item(approval)
                if item.is_due(now):
                    self.end(approval.id, Outcome("expired", item.expires))
                    continue
                self.ended.pop(approval.id, None)
                self.items[approval.id] = item
                if self.kept is not None and self.kept.id == approval.id:
                    self.kept = item
                if approval.id not in self._known:
                    self._known.add(approval.id)
                    came.append(item)
        return came

    def _now(self, item: Item) -> Item:
        ended = self.ended.get(item.id)
        return self.items.get(item.id) or (Item(item.approval, ended) if ended else item)


class Sweep:
    """One way through all pages: which one to ask for next, and what was met."""

    def __init__(self, before: Collection[str] = ()) -> None:
        self._before = frozenset(before)
        self._met: set[str] = set()
        self.offset = 0
        self.done = False

    def take(self, ids: Sequence[str]) -> None:
        """The page at `offset` has these."""
        joined = self.offset == 0 or any(key in self._met for key in ids)
        if not joined:
            # More have left than pages overlap: between the last page and this one something may have slipped by.
            self.offset = max(0, self.offset - PAGE)
            return
        self._met.update(ids)
        self.done = len(ids) < PAGE
        self.offset += PAGE - OVERLAP

    def missed(self) -> frozenset[str]:
        """What waited before the sweep began and was not met."""
        return self._before - self._met
