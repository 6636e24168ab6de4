"""Choosing which part of the queue to see: what became of it, or of which agent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.queue.queue import Item
from console.queue.queue_view import STATUS_WORDS, STATUSES, View
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText


@dataclass(frozen=True)
class Choice:
    """One line: what it shows, and how many there are as far as that is known."""

    name: str
    view: View
    count: int | None = None

    @property
    def shown_count(self) -> str:
        return "" if self.count is None else f"{self.count:,}"


class FilterQueue(ModalScreen[View | None]):
    """Answers with another view, or None when one steps back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f", "dismiss", "Cancel")]

    def __init__(self, view: View, items: Sequence[Item]) -> None:
        super().__init__()
        self._choices = choices(view, items)

    def compose(self) -> ComposeResult:
        with Vertical(id="choice"):
            yield PlainText("Show which approvals?")
            yield Listing[Choice](
                [
                    Column("Show", lambda choice: choice.name, 20, share=1),
                    Column("Waiting", lambda choice: choice.shown_count, 8, right=True),
                ],
                lambda choice: choice.name,
            )
            yield PlainText("Enter applies, Esc cancels.")

    def on_mount(self) -> None:
        self.query_one(Listing).show(self._choices)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        event.stop()
        self.dismiss(event.row.view)


def choices(view: View, items: Sequence[Item]) -> list[Choice]:
    """Each status, then each agent of whom something waits, the busiest first."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for item in items:
        key = item.approval.agent_id
        counts[key] = counts.get(key, 0) + 1
        names[key] = item.approval.agent_name
    found = [Choice(_status_name(status), replace(view, status=status, agent=None)) for status in STATUSES]
    found[0] = replace(found[0], count=len(items))
    for key in sorted(counts, key=lambda key: (-counts[key], names[key], key)):
        found.append(
            Choice(f"Waiting, of {names[key]} ({key})", replace(view, status="pending", agent=key), counts[key])
        )
    return found


def _status_name(status: str) -> str:
    words = {"pending": "All pending", "expired": "What expired", "all": "Everything, decided or not"}
    return words.get(status) or f"What was {STATUS_WORDS[status]}"  # type: ignore[index]
