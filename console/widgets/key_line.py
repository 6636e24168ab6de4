"""The line of keys under every screen: in a narrow terminal only those that one could not guess from the help."""

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

_WIDE_ENOUGH: Final = 100
_LEFT_OUT: Final = frozenset({"sort", "reload", "intents", "accounts"})


class KeyLine(Footer):
    """Textual's own, without what does not fit: the keys work all the same."""

    def compose(self) -> ComposeResult:
        narrow = self.app.size.width < _WIDE_ENOUGH
        for key in super().compose():
            if isinstance(key, FooterKey) and not key.has_class("-command-palette"):
                # What it is bound to, from the beginning: else its styles are worked out three times.
                key.set_reactive(FooterKey.compact, self.compact)
            if not (narrow and isinstance(key, FooterKey) and key.action in _LEFT_OUT):
                yield key

    async def on_resize(self, event: events.Resize) -> None:
        """Another width may have room for others."""
        await self.recompose()
