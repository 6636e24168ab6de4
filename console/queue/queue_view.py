"""In which order the queue is shown, and which part of it. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from console.queue.queue import Item
from words.texts.plain import clip

Sorting = Literal["newest first", "oldest first", "soonest to expire", "largest native amount", "by agent"]
Status = Literal["pending", "approved", "rejected", "expired", "all"]
STATUSES: Final[tuple[Status, ...]] = ("pending", "approved", "rejected", "expired", "all")
STATUS_WORDS: Final[dict[Status, str]] = {
    "pending": "waiting",
    "approved": "approved",
    "rejected": "denied",
    "expired": "expired",
    "all": "all",
}
_NEVER: Final = float("inf")


def _age(item: Item) -> float:
    return item.asked.timestamp() if item.asked else 0.0


def _expiry(item: Item) -> float:
    return item.expires.timestamp() if item.expires else _NEVER


# Equal ones in the order of their ids, so that no line changes place without a reason.
_KEYS: Final[dict[Sorting, Callable[[Item], Any]]] = {
    "newest first": lambda item: (-_age(item), item.id),
    "oldest first": lambda item: (_age(item), item.id),
    "soonest to expire": lambda item: (_expiry(item), -_age(item), item.id),
    "largest native amount": lambda item: (-item.size, -_age(item), item.id),
    "by agent": lambda item: (item.approval.agent_name.lower(), item.approval.agent_id, -_age(item), item.id),
}
SORTINGS: Final = tuple(_KEYS)


@dataclass(frozen=True)
class View:
    """A person's filter and order of the queue."""

    sorting: Sorting = "newest first"
    status: Status = "pending"
    agent: str | None = None
    search: str = ""

    def of(self, items: Iterable[Item]) -> list[Item]:
        """Those items, in that order."""
        wanted = self.search.strip().lower()
        found = [item for item in items if self._shows(item, wanted)]
        found.sort(key=_KEYS[self.sorting])
        return found

    def with_next_sorting(self) -> "View":
        """The same in the next order."""
        return replace(self, sorting=SORTINGS[(SORTINGS.index(self.sorting) + 1) % len(SORTINGS)])

    def sentence(self, shown: int, marked: int = 0) -> str:
        """Describe the view in a sentence: counts, kinds and order."""
        parts = [f"{shown:,} {STATUS_WORDS[self.status] if self.status != 'all' else 'in all'}"]
        parts += [f"of agent {clip(self.agent, 40)}"] if self.agent else []
        parts += [f'with "{clip(self.search.strip(), 40)}"'] if self.search.strip() else []
        parts += [f"{marked:,} marked"] if marked else []
        return " · ".join([*parts, self.sorting])

    @property
    def narrowed(self) -> bool:
        """True if something may be hidden."""
        return bool(self.search.strip() or self.agent or self.status != "pending")

    def _shows(self, item: Item, wanted: str) -> bool:
        return (self.agent is None or item.approval.agent_id == self.agent) and (not wanted or wanted in item.text)
