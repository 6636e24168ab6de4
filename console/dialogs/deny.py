"""Asks before denying one item, and for a reason."""

from typing import Final

from textual.app import ComposeResult
from textual.widgets import Input

from console.dialogs.deciding import Deciding

# As the API has it.
REASON_CHARACTERS: Final = 1_000


class Deny(Deciding):
    """Answers with what came of it; what is denied can never be signed."""

    TITLE_TEXT = "Deny this?"
    CONFIRM = "Deny"
    VARIANT = "error"
    WAY = "deny"
    AUTO_FOCUS = "#reason"

    def fields(self) -> ComposeResult:
        yield from super().fields()
        yield Input(
            placeholder="Why? The agent's owner reads it (may stay empty)", id="reason", max_length=REASON_CHARACTERS
        )

    @property
    def reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()
