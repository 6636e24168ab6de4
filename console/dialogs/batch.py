"""Asks before deciding over several items, decides over one after the other, and says what became of each."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from textual import work
from textual.app import ComposeResult

from console.dialogs.careful import MORE_IS_KNOWN, Careful, NotRead
from console.queue import batch
from console.queue.context_cache import RECENT
from console.queue.decisions import Over, Refused, Way, decide
from console.queue.queue import Item, Outcome
from console.widgets.line_view import LineView
from console.widgets.reason_line import ReasonLine
from console.wire.api_client import new_key
from console.wire.failures import Failure, MfaRequired, SignedOut
from words.orders.dangers import dangers, warns
from words.orders.order import Known, of_approval
from words.orders.words import essentials
from words.texts.lines import Line

_NOTHING = Known()
_WARNS = ("warn", "bad")


# After one of these the others would be asked about in vain, and the person each time.
_ENDS = (SignedOut, MfaRequired, NotRead)


class BatchDecision(Careful[frozenset[str]]):
    """Every item is read before, with its total and all that one is told of a single one; afterwards what became of it.

    Answers the ids of those that are left to decide; None when one steps back before anything was.
    `learn` finds out what is known around an item; None where that cannot be had.
    """

    DEFAULT_CSS = "BatchDecision #totals { margin-bottom: 1; }"

    def __init__(self, way: Way, items: Sequence[Item], learn: Callable[[Item], Awaitable[Known | None]]) -> None:
        super().__init__()
        self._way = way
        self._learn = learn
        self._known: dict[str, Known] = {}
        self._items = list(items)
        self._keys = {item.id: new_key() for item in items}
        # What was said to each; who has no line yet, or may be asked again, is left to do.
        self._said: dict[str, Line] = {}
        self._left = list(items)
        # What was told of each where it was to be read.
        self._read: dict[str, list[Line]] = {}
        self._stop = False
        # When all that is known around them was there; None while it is asked for.
        self._looked_at: datetime | None = None
        self._sent: str | None = None
        self.TITLE_TEXT = f"{way.capitalize()} these {len(items):,}?"
        self.CONFIRM = f"{way.capitalize()} {len(items):,}"
        self.VARIANT = "success" if way == "approve" else "error"
        self.TO_THE_END = way == "approve"

    def essentials(self) -> ComposeResult:
        yield LineView([Line(line, "warn") for line in batch.totals(self._items)], id="totals")
        yield LineView(self._to_read(), id="items")

    def fields(self) -> ComposeResult:
        if self._way == "deny":
            yield ReasonLine("Reason for all (optional)")

    def on_mount(self) -> None:
        for line in self.query(ReasonLine):
            line.focus()
        if self._way == "approve":
            self._look_around()
            self.set_interval(1, self._second)

    def _second(self) -> None:
        """The context gets stale while the dialog is open; fetch it again."""
        since = self._looked_at
        if self._open_items() and since is not None and abs(self.app.now() - since) > RECENT:
            self._look_around()

    @work(group="around")
    async def _look_around(self) -> None:
        self._looked_at = None
        for item in self._items:
            if item.id in self._open_items() and (known := await self._learn(item)) is not None:
                self._known[item.id] = known
        self._looked_at = self.app.now()
        if not self._busy and self._left and any(self._lines_of(item) != self._read[item.id] for item in self._left):
            self.query_one("#items", LineView).show(self._to_read())
            self.more_is_known()

    async def perform(self) -> frozenset[str]:
        if self._sent not in (None, self.reason):
            # A different reason is a different request; items decided by the first one report it.
            self._keys = {item.id: new_key() for item in self._items}
        self._sent = self.reason
        left, self._left = self._left, []
        for place, item in enumerate(left):
            # What became known meanwhile of one that is still to come was not read.
            if self._stop or self._news(item):
                self._left += left[place:]
                break
            self._asked_at = time.monotonic()
            self.tell(f"{place + 1:,} of {len(left):,}… Esc stops after this one.")
            try:
                await self._decide(item)
            except BaseException:
                self._left += left[place:]
                raise
            self.query_one("#items", LineView).show(self._lines())
        return self._open_items()

    def conclude(self, result: frozenset[str]) -> None:
        """Stay open: what became of each is read before one goes back."""
        self._say(self._summary())

    @property
    def dangerous(self) -> bool:
        return self._way == "approve" and any(warns(self._read[item.id]) for item in self._left)

    @property
    def reason(self) -> str:
        """The person's reason, for all of them."""
        return self.query_one(ReasonLine).reason if self._way == "deny" else ""

    async def _decide(self, item: Item) -> None:
        app, key = self.app, self._keys[item.id]
        try:
            outcome = await app.act(lambda: self._decide_as_read(item, key))
        except Over as over:
            self._said[item.id] = Line(over.sentence, "warn")
            if over.outcome:
                app.queue_monitor.has_ended(item.id, over.outcome)
        except _ENDS:
            raise
        except Failure as failure:
            if isinstance(failure, Refused):
                # That was an answer, and it is kept under its key.
                self._keys[item.id] = new_key()
            again = "" if isinstance(failure, Refused) else f" {self.confirm_key} asks again."
            self._said[item.id] = Line(failure.sentence.replace("\n", " ") + again, "bad")
            self._left.append(item)
        else:
            self._said[item.id] = Line(outcome.sentence, "good")
            app.queue_monitor.has_ended(item.id, outcome)

    async def _decide_as_read(self, item: Item, key: str) -> Outcome:
        # Asked once more where a second factor was wanted first, and that may have taken minutes.
        if self._news(item):
            raise NotRead("Not decided.")
        return await decide(self.app.client, item, self._way, key, self._sent or "")

    def action_step_back(self) -> None:
        if self._busy and not self._stop:
            self._stop = True
            self.tell("Stopping after this one…")
        else:
            super().action_step_back()

    def close(self, result: frozenset[str] | None) -> None:
        super().close(self._open_items() if self._said else None)

    def _open_items(self) -> frozenset[str]:
        over = {key for key, said in self._said.items() if said.tone != "bad"}
        return frozenset(item.id for item in self._items if item.id not in over)

    def _summary(self) -> str:
        done = sum(said.tone == "good" for said in self._said.values())
        before = sum(said.tone == "warn" for said in self._said.values())
        word = "approved" if self._way == "approve" else "denied"
        parts = [f"{done:,} {word}"]
        parts += [f"{before:,} not: already decided or expired"] if before else []
        parts += [f"{len(self._left):,} left: {self.confirm_key} continues"] if self._left else []
        return ", ".join(parts) + "."

    def _to_read(self) -> list[Line]:
        """The same, from where one reads it before anything more is decided."""
        self._read = {item.id: self._lines_of(item) for item in self._items}
        return self._lines()

    def _lines(self) -> list[Line]:
        """Each in full, and what became of it."""
        lines: list[Line] = []
        for number, item in enumerate(self._items, 1):
            first, *rest = self._lines_of(item)
            lines += [Line(f"{number:,}. {first.text}", first.tone), *rest]
            if item.id in self._said:
                line = self._said[item.id]
                lines.append(Line(f"  -> {line.text}", line.tone))
        return lines

    def _news(self, item: Item) -> bool:
        """Tell whether the item has a warning that was not read."""
        return any(said.tone in _WARNS and said not in self._read[item.id] for said in self._lines_of(item))

    def _lines_of(self, item: Item) -> list[Line]:
        order, known = of_approval(item.approval), self._known.get(item.id, _NOTHING)
        # Missing context does not matter for a denial.
        return [*(dangers(order, known) if self._way == "approve" else []), *essentials(order, known)]

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        if not busy and any(self._news(item) for item in self._left):
            self.query_one("#items", LineView).show(self._to_read())
            self._read_again()
            sentence = f"{sentence} {MORE_IS_KNOWN}"
        super()._say(sentence, busy=busy)
        if not busy:
            self._stop = False
        if not busy and not self._left:
            self.finish()
