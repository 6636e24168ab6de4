"""The title of the terminal's window: how many wait is seen from another window, too."""

from typing import Final

from textual.driver import Driver

# The terminal keeps the title it had, and gets it back.
_KEEP: Final = "\x1b[22;2t"
_GIVE_BACK: Final = "\x1b[23;2t"


class TerminalTitle:
    """Written to a terminal and to nothing else: a browser shows its own, and a test has none."""

    def __init__(self, driver: Driver | None) -> None:
        self._driver = None if driver is None or driver.is_headless or driver.is_web else driver
        self._write(_KEEP)

    def show(self, waiting: int | None) -> None:
        """Our own words and a number, never anything that came from elsewhere."""
        self._write(f"\x1b]2;{f'({waiting:,}) ' if waiting else ''}Custody\x07")

    def give_back(self) -> None:
        """The console ends."""
        self._write(_GIVE_BACK)

    def _write(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)
