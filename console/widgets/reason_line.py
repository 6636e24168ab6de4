"""The line in which somebody says why they deny, or freeze."""

from typing import Final

from textual.widgets import Input

# As the API has it.
REASON_CHARACTERS: Final = 1_000


class ReasonLine(Input):
    """May stay empty; holds what the API takes, and its cursor stands still."""

    def __init__(self, placeholder: str, *, compact: bool = False) -> None:
        super().__init__(placeholder=placeholder, id="reason", max_length=REASON_CHARACTERS, compact=compact)
        self.cursor_blink = False

    @property
    def reason(self) -> str:
        """The reason that was typed."""
        return self.value.strip()
