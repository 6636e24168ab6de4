"""The screen of a console that is shown in a browser: it goes through a pipe, and ends with it."""

from textual import messages
from textual.drivers.web_driver import WebDriver


class BrowserDriver(WebDriver):
    """Textual's own, but without a way to open addresses, and gone when nobody listens any more."""

    def run_input_thread(self) -> None:
        """Read the keyboard input; its end ends the console, also if the parent process was killed."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(messages.ExitApp())

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Nothing that is written on the screen opens a page."""
