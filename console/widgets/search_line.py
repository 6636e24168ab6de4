"""A line that is only there while one searches; every letter narrows the list at once."""

from textual.widgets import Input


class SearchLine(Input):
    """Shown by `/`; Enter keeps what it says, Esc takes it back."""

    DEFAULT_CSS = """
    SearchLine, SearchLine:focus { border: none; height: 1; padding: 0 1; background: $panel; display: none; }
    SearchLine.-shown { display: block; }
    """

    def on_mount(self) -> None:
        self.cursor_blink = False

    def enter(self) -> None:
        """Begin to search."""
        self.add_class("-shown")
        self.focus()

    def keep(self) -> None:
        """It stays to be seen while it says something."""
        self.set_class(bool(self.value.strip()), "-shown")

    def leave(self) -> None:
        """Search for nothing any more."""
        self.value = ""
        self.remove_class("-shown")
