"""Authorising, rejecting, executing or canceling one intent."""

from collections.abc import Sequence
from typing import Final, Literal

from textual.app import ComposeResult

from console.dialogs.careful import Careful
from console.widgets.line_view import LineView
from console.widgets.reason_line import ReasonLine
from console.wire.shapes_intents import Intent
from words.texts.lines import Line

Act = Literal["authorize", "reject", "execute", "cancel"]
_ASKS: Final[dict[Act, tuple[str, str]]] = {
    "authorize": ("Authorise this?", "Authorise"),
    "reject": ("Reject this?", "Reject"),
    "execute": ("Execute this now?", "Execute"),
    "cancel": ("Cancel this?", "Cancel it"),
}
_MEANS: Final[dict[Act, Line]] = {
    "authorize": Line(
        "Nothing happens yet: somebody executes it then, and the rules of that moment are asked.", "quiet"
    ),
    "reject": Line("It is never carried out.", "quiet"),
    "execute": Line("It is carried out at once, once.", "warn"),
    "cancel": Line("It is never carried out.", "quiet"),
}


class ActOnIntent(Careful[Intent]):
    """Answers with the intent as it is then."""

    LEAVING = "The outcome is unknown; the list will show it."

    def __init__(self, intent: Intent, lines: Sequence[Line], act: Act) -> None:
        super().__init__()
        self._intent, self._lines, self._act = intent, lines, act
        self.TITLE_TEXT, self.CONFIRM = _ASKS[act]
        # To refuse something costs nothing.
        self.TO_THE_END = act in ("authorize", "execute")
        self.VARIANT = "primary" if self.TO_THE_END else "error"

    @property
    def dangerous(self) -> bool:
        return self.TO_THE_END and any(line.tone == "bad" for line in self._lines)

    def essentials(self) -> ComposeResult:
        yield LineView([*self._lines, Line(""), _MEANS[self._act]])

    def fields(self) -> ComposeResult:
        if self._act in ("authorize", "reject"):
            yield ReasonLine("Reason, for the audit trail (optional)")

    async def perform(self) -> Intent:
        path, body = f"/intents/{self._intent.id}/{self._act}", {}
        if self._act in ("authorize", "reject"):
            # What was shown, and nothing else: the service refuses the digest of another.
            body = {"digest": self._intent.digest}
            if reason := self.query_one(ReasonLine).reason:
                body["reason"] = reason
        return await self.send("POST", path, Intent, body)
