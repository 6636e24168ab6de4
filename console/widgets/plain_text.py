"""The only widget that shows text: what it is given is never read as markup."""

from typing import Any

from textual.content import Content
from textual.widgets import Static


class PlainText(Static):
    """Text, or Content where it has styles; square brackets are square brackets."""

    def __init__(self, content: str | Content = "", **options: Any) -> None:
        super().__init__(content, markup=False, **options)

    def update(self, content: Any = "", *, layout: bool = True) -> None:
        """Show this from now on; what is shown already is not drawn again."""
        if content != self.content:
            super().update(content, layout=layout)
