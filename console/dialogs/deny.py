"""Asks before denying one item, and for a reason."""

from textual.app import ComposeResult

from console.dialogs.deciding import DecidingAtOnce
from console.widgets.reason_line import ReasonLine


class Deny(DecidingAtOnce):
    """Answers with what came of it; what is denied can never be signed."""

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
