"""What asking about one item shares: its essentials, the time that is left, and what somebody else does meanwhile."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Button

from console.api_client import new_key
from console.dangers import dangers
from console.decisions import Over, Refused, Way, decide
from console.dialogs.ask import Ask
from console.moments import span
from console.order import Known, of_approval
from console.queue import Item, Outcome
from console.said import Said
from console.widgets.plain_text import PlainText
from console.widgets.said_lines import SaidLines
from console.words import essentials


class Deciding(Ask[Outcome]):
    """Decides over the order that it shows, and over no other; once that is over, its button does nothing."""

    WAY: Way
    DEFAULT_CSS = """
    Deciding #deadline { height: 1; color: $text-muted; }
    """

    def __init__(self, item: Item, known: Callable[[], Known | None]) -> None:
        super().__init__()
        self.item = item
        self._known = known
        self._over = ""
        self._read: list[Said] = []
        self._sent: str | None = None

    def essentials(self) -> ComposeResult:
        self._read = self.lines()
        yield SaidLines(self._read, id="said")

    def lines(self) -> list[Said]:
        """What must not be missed, then what the order does, with what is known around it by now."""
        order, known = of_approval(self.item.approval), self._known() or Known()
        found = dangers(order, known)
        return [*found, *([Said("")] if found else []), *essentials(order, known)]

    def fields(self) -> ComposeResult:
        yield PlainText("", id="deadline")

    def on_mount(self) -> None:
        super().on_mount()
        self.watch(self.app, "queue_version", self._look)
        self.set_interval(0.5, self._look)
        self.call_after_refresh(self._look)

    async def perform(self) -> Outcome:
        app = self.app
        if self._sent not in (None, self.reason):
            # Another reason is another request; if the first one has arrived, this one is told so.
            self.key = new_key()
        self._sent = self.reason
        try:
            outcome = await app.act(lambda: decide(app.client, self.item, self.WAY, self.key, self.reason))
        except Over as over:
            self._over = over.sentence
            if over.outcome:
                app.lookout.has_ended(self.item.id, over.outcome)
            raise
        except Refused:
            # That was an answer, and it is kept under its key: to be judged anew is another request.
            self.key = new_key()
            raise
        app.lookout.has_ended(self.item.id, outcome)
        return outcome

    @property
    def reason(self) -> str:
        """What the person says to it."""
        return ""

    def action_confirm(self) -> None:
        cancelled = isinstance(self.focused, Button) and self.focused.id == "cancel"
        if cancelled or not self._over:
            super().action_confirm()

    def _look(self) -> None:
        """What the time, or somebody else, has made of the item while the question stands."""
        if self._busy or self._over:
            return
        if (lines := self.lines()) != self._read:
            # More is known than what was drawn: it must be drawn before it can be answered.
            self._drawn, self._read = False, lines
            self.query_one("#said", SaidLines).show(lines)
            self.call_after_refresh(self._arm)
        self._over = self._end()
        if self._over:
            self._say(self._over)
        expires = self.item.expires
        left = f"Expires in {span(expires - self.app.now())}." if expires else "Does not expire."
        self.query_one("#deadline", PlainText).update("" if self._over else left)

    def _end(self) -> str:
        """Why nothing is left to decide; empty while something is."""
        outcome = self.app.lookout.queue.ended.get(self.item.id)
        if outcome is None and not self.item.is_due(self.app.now()):
            return ""
        said = outcome.sentence if outcome else "This has expired: nobody decided in time."
        return f"{said} There is nothing left to decide."

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        if not busy and not self._over:
            self._over = self._end()
        super()._say(self._over or sentence, busy=busy)
        if self._over:
            self.query_one("#confirm", Button).disabled = True
