"""The base of questions that are answered on a page of this machine. Decision 0059."""

from console.approver.page import Answer, Page, serve
from console.dialogs.ask import Ask


class OnPage[Result](Ask[Result]):
    """Says where the page is while it waits to be answered there."""

    _address = ""

    def on_mount(self) -> None:
        self.set_interval(0.5, self._tell_slow)

    async def wait_for_answer(self, page: Page) -> Answer:
        """Show the page until the person's key has answered on it."""
        async with serve(page):
            self._address = page.address
            self._tell_slow()
            try:
                return await page.answer()
            finally:
                self._address = ""

    def _tell_slow(self) -> None:
        if self._address and self._busy:
            self.tell(
                "Open this page in a browser of this machine. It works once, for five minutes; Esc leaves.\n"
                f"{self._address}"
            )
        elif self._busy:
            super()._tell_slow()
