"""The base of a question about one item: essentials, the time that is left, and what somebody else does meanwhile."""

from collections.abc import Callable
from dataclasses import replace

from textual.app import ComposeResult

from console.dialogs.careful import MORE_IS_KNOWN, Careful, NotRead
from console.queue.decisions import Over, Refused, Way, decide
from console.queue.queue import Item, Outcome
from console.widgets.line_view import LineView
from console.widgets.plain_text import PlainText
from console.widgets.reason_line import ReasonLine
from console.wire.api_client import new_key
from words.orders.dangers import dangers, warns
from words.orders.order import Known, of_approval
from words.orders.words import essentials
from words.shapes import Votes
from words.texts.lines import Line
from words.texts.moments import clock


class Deciding(Careful[Outcome | Votes]):
    """Decides over the order that it shows, and over no other; once that is over, its button does nothing.

    Answers with what came of it: the outcome, or the votes so far where the item waits for more.
    """

    WAY: Way
    _sent: str | None = None
    DEFAULT_CSS = """
    Deciding #deadline { height: 1; color: $text-muted; }
    """

    def __init__(self, item: Item, known: Callable[[], Known | None]) -> None:
        super().__init__()
        self.item = item
        self._known = known
        self._over = ""
        self._read: list[Line] = []

    def essentials(self) -> ComposeResult:
        self._read = self.lines()
        yield LineView(self._read, id="said")

    def lines(self) -> list[Line]:
        """Return first the dangers, then what the order does, with what is known around it by now."""
        # Its expiry is said once, with the time that is left.
        order, known = replace(of_approval(self.item.approval), expires_at=None), self._known() or Known()
        found = dangers(order, known)
        return [*found, *([Line("")] if found else []), *essentials(order, known)]

    def fields(self) -> ComposeResult:
        yield PlainText("", id="deadline")

    def on_mount(self) -> None:
        self.watch(self.app, "queue_version", self._look)
        self.set_interval(0.5, self._look)
        self.call_after_refresh(self._look)

    @property
    def dangerous(self) -> bool:
        # To refuse something costs nothing.
        return self.TO_THE_END and warns(self._read)

    @property
    def reason(self) -> str:
        """The person's reason."""
        return ""

    async def perform(self) -> Outcome | Votes:
        monitor = self.app.queue_monitor
        try:
            found = await self.decide()
        except Over as over:
            self._over = over.sentence
            if over.outcome:
                monitor.has_ended(self.item.id, over.outcome)
            raise
        if isinstance(found, Outcome):
            monitor.has_ended(self.item.id, found)
        else:
            # The item stays, with its new count.
            monitor.watch.ring()
        return found

    async def decide(self) -> Outcome | Votes:
        """Decide alone, in one request."""
        if self._sent not in (None, self.reason):
            # Another reason is another request; if the first one has arrived, this one is told so.
            self.key = new_key()
        self._sent = self.reason
        try:
            return await self.app.act(self._decide_as_read)
        except Refused:
            # That response is stored under its key: a new evaluation needs a new request.
            self.key = new_key()
            raise

    def insist_on_reading(self, sentence: str) -> None:
        """Raise NotRead where a warning has come that was not shown: a second factor may have taken minutes."""
        if any(said.tone in ("warn", "bad") and said not in self._read for said in self.lines()):
            raise NotRead(sentence)

    async def _decide_as_read(self) -> Outcome:
        if self.TO_THE_END:
            self.insist_on_reading("Not decided.")
        return await decide(self.app.client, self.item, self.WAY, self.key, self.reason)

    def _look(self) -> None:
        """Show what the time, or somebody else, has made of the item while the question stands."""
        if self._busy or self._over:
            return
        if self._show_news():
            self.more_is_known()
        if self._end():
            self._say("")
            return
        at = f", at {clock(self.item.expires)}" if self.item.expires else ""
        self.query_one("#deadline", PlainText).update(f"This request {self.item.until(self.app.now())}{at}.")
        self.draw()

    def _show_news(self) -> bool:
        """Show what has become known since; False when that is nothing."""
        if (lines := self.lines()) == self._read:
            return False
        self._read = lines
        self.query_one("#said", LineView).show(lines)
        return True

    def _end(self) -> str:
        """Why nothing is left to decide; empty while something is."""
        outcome = self.app.queue_monitor.queue.ended.get(self.item.id)
        if outcome is None and not self.item.is_due(self.app.now()):
            return ""
        said = outcome.sentence if outcome else "This has expired: it was not decided in time."
        return f"{said} Nothing is left to decide."

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        if not busy and not self._over:
            self._over = self._end()
        if not busy and not self._over and self._show_news():
            self._read_again()
            sentence = f"{sentence} {MORE_IS_KNOWN}"
        super()._say(self._over or sentence, busy=busy)
        if self._over:
            self.query_one("#deadline", PlainText).display = False
            self.finish()


class Approve(Deciding):
    """Signs the item, and sends it if its agent wanted that."""

    TITLE_TEXT = "Approve this?"
    CONFIRM = "Approve"
    VARIANT = "success"
    WAY = "approve"


class Deny(Deciding):
    """Denies the item, perhaps with a reason; what is denied can never be signed."""

    TITLE_TEXT = "Deny this?"
    CONFIRM = "Deny"
    VARIANT = "error"
    WAY = "deny"
    TO_THE_END = False
    AUTO_FOCUS = "ReasonLine"

    def fields(self) -> ComposeResult:
        yield from super().fields()
        yield ReasonLine("Reason, shown to the agent's owner (optional)")

    @property
    def reason(self) -> str:
        return self.query_one(ReasonLine).reason
