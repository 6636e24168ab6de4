"""The base of questions that are answered on a page of this machine. Decision 0059."""

from abc import abstractmethod
from typing import Final

from console.approver.page import Answer, Page, serve
from console.dialogs.ask import Ask
from console.wire.failures import Failure
from console.work import work

_LEFT: Final = "The console went back without waiting. Its list shows whether anything became of it."


class OnPage[Result](Ask[Result]):
    """Says where the page is while it waits to be answered there; the page says then what became of it."""

    _page: Page | None = None
    _waits = False

    def on_mount(self) -> None:
        self.set_interval(0.5, self._tell_slow)

    def on_unmount(self) -> None:
        self._tell_page(_LEFT, done=False)

    @abstractmethod
    def on_page(self, result: Result) -> str:
        """Say what came of it, in a sentence for the page."""

    async def wait_for_answer(self, page: Page) -> Answer:
        """Show the page until the person's key has answered on it; it stands until it was told what became of that."""
        self._page = page
        # The question may be gone before the page has read the last word.
        work(self.app, "page", _serve, page, exclusive=False)
        await page.stands.wait()
        self._waits = True
        self._tell_slow()
        try:
            return await page.answer()
        finally:
            self._waits = False

    def conclude(self, result: Result) -> None:
        self._tell_page(self.on_page(result), done=True)
        super().conclude(result)

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        if not busy:
            self._tell_page(sentence, done=False)
        super()._say(sentence, busy=busy)

    def _tell_page(self, sentence: str, *, done: bool) -> None:
        if self._page is not None:
            self._page.tell(sentence, done=done)
            self._page = None

    def _tell_slow(self) -> None:
        if self._page is not None and self._waits and self._busy:
            self.tell(
                "Open this page in a browser of this machine. It works once, for five minutes; Esc leaves.\n"
                f"{self._page.address}"
            )
        elif self._busy:
            super()._tell_slow()


async def _serve(page: Page) -> None:
    try:
        async with serve(page):
            await page.over()
    except Failure as failure:
        page.fail(failure)
