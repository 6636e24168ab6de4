"""Draws on standard output, where a terminal is insisted on. Textual's own driver draws on standard error."""

import sys

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """Standard error is for messages: what is redirected there must not hold the queue."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if sys.__stdout__ is not None:
            self._file = sys.__stdout__
