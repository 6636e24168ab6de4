"""Asks before approving one item."""

from textual.containers import VerticalScroll
from textual.widgets import Button

from console.dialogs.deciding import Deciding


class Approve(Deciding):
    """Answers with what came of it; the item is signed, and sent if its agent wanted that.

    What does not fit into the terminal is read on with the key that would approve: nothing is approved by somebody
    who has seen only its beginning.
    """

    TITLE_TEXT = "Approve this?"
    CONFIRM = "Approve"
    VARIANT = "success"
    WAY = "approve"

    @property
    def unread(self) -> bool:
        """Whether the end of the essentials has not been on the screen."""
        area = self.query_one("#essentials", VerticalScroll)
        return round(area.scroll_y) < area.max_scroll_y

    def action_confirm(self) -> None:
        if self._drawn and self.unread and self._may_read_on():
            self.query_one("#essentials", VerticalScroll).scroll_page_down(animate=False)
            self.call_after_refresh(self._look)
        else:
            super().action_confirm()

    def _may_read_on(self) -> bool:
        return not self.query_one("#confirm", Button).disabled and self.focused is not self.query_one("#cancel")

    def _look(self) -> None:
        super()._look()
        label = f"{'Read on' if self.unread else self.CONFIRM} (Enter)"
        button = self.query_one("#confirm", Button)
        if str(button.label) != label:
            button.label = label
