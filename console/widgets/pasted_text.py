"""A field for a pasted text of many lines, in which Enter means what it means in a field of one."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea


class PastedText(TextArea):
    """Lines come by pasting; Enter hands the text in, after everything that was typed before it."""

    class Submitted(Message):
        """Enter was pressed."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default()
            event.stop()
            self.post_message(self.Submitted())
