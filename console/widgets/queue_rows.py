"""One item of the queue as a line of the list."""

from collections.abc import Callable
from datetime import datetime, timedelta

from console.queue.queue import Item
from console.widgets.listing import Cell, Column
from words.texts.chains import chain_of
from words.texts.lines import Tone
from words.texts.moments import ago, span

# From here on the time that is left is worth a second look.
SOON = timedelta(minutes=10)


class QueueRows:
    """The columns of the queue; times are as of the moment at which a line is drawn."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def columns(self) -> list[Column[Item]]:
        """From left to right."""
        return [
            Column("Agent", lambda item: _dim(item, item.approval.agent_name), 14),
            Column("Asks for", self._summary, 20, share=1),
            Column("Chain", self._chain, 14, wide=True),
            Column("Age", lambda item: _dim(item, ago(item.asked, self._now())), 4, right=True),
            Column("Expires in", self._time_left, 10, right=True),
        ]

    def _chain(self, item: Item) -> Cell:
        return _dim(item, chain_of(item.approval.kind, item.approval.chain_id))

    def _summary(self, item: Item) -> Cell:
        text = f"{item.voted}{item.summary}"
        return _dim(item, text, "bad" if item.is_grave else None)

    def _time_left(self, item: Item) -> Cell:
        if item.outcome is not None:
            return item.outcome.word, "quiet"
        if item.expires is None:
            return "never", "quiet"
        left = item.expires - self._now()
        if left <= timedelta():
            return "?" if item.clock_is_wrong else "expired", "quiet"
        return (span(left), "warn") if left < SOON else span(left)


def _dim(item: Item, text: str, tone: Tone | None = None) -> Cell:
    if item.outcome is not None:
        return text, "quiet"
    return (text, tone) if tone else text
