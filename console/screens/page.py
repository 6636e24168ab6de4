"""The base of every screen: heading, navigation, banner, footer, and how it gets what it shows."""

import asyncio
from abc import abstractmethod
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.worker import Worker

from console.application import Application
from console.widgets.banner import Banner
from console.widgets.heading import Heading, Navigation
from console.widgets.key_line import KeyLine
from console.widgets.too_small import HEIGHTS, WIDTHS, TooSmall, fit
from console.wire.failures import Away, Failure, Faulty, Malformed, TooFast
from console.work import work


class Page(Screen[None]):
    """A place of the navigation. It loads when one comes to it, and again every `EVERY_SECONDS` while it is seen.

    What is on the screen stays while the service is away or faulty, and the banner says how old it is. Textual's
    metaclass is not `ABCMeta`, so it is mypy that refuses an instance without the abstract methods.
    """

    PLACE: ClassVar[str] = ""
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    # One begins at the list, never in a line for typing: there, keys would be letters.
    AUTO_FOCUS = "Listing"
    EVERY_SECONDS: ClassVar[float] = 10.0
    app: Application

    def compose(self) -> ComposeResult:
        yield Heading(self.app.heading, id="heading")
        yield Navigation(self.PLACE)
        yield Banner()
        with Vertical(id="body"):
            yield from self.body()
        yield KeyLine(show_command_palette=False)
        yield TooSmall()

    @abstractmethod
    def body(self) -> ComposeResult:
        """Compose the content of this screen."""

    async def load(self) -> None:
        """Ask for what is shown, and show it; a Failure goes to the banner."""

    def on_mount(self) -> None:
        self.set_interval(self.app.every or self.EVERY_SECONDS, self._tick)

    def on_screen_resume(self) -> None:
        fit(self)
        # While another place was shown, nobody told this one.
        self.query_one(Banner).away = self.app.away
        self.query_one(Navigation).waiting = self.app.waiting
        self.query_one(Heading).update(self.app.heading)
        self.reload()

    def reload(self) -> Worker[None]:
        """Load again; cancel a load in progress."""
        return work(self, "load", self._keep_loading)

    def action_reload(self) -> None:
        self.reload()

    def action_leave(self) -> None:
        """Back to the place that this one lies over."""
        self.dismiss()

    def trouble(self, sentence: str) -> None:
        """Say what is wrong with this screen; nothing, when it is empty."""
        self.query_one(Banner).say(sentence)

    def fresh(self) -> None:
        """Note that the content is as new as this moment."""
        self.query_one(Banner).known_at = self.app.now()

    def _tick(self) -> None:
        # A question over it does not make what is below it old; another page over it hides it.
        pages = [screen for screen in self.app.screen_stack if isinstance(screen, Page)]
        seen = bool(pages) and pages[-1] is self
        if seen and not any(w.group == "load" and w.node is self and w.is_running for w in self.workers):
            self.reload()

    async def _keep_loading(self) -> None:
        failures = 0
        while True:
            try:
                await self.load()
            except Failure as failure:
                failures += 1
                wait = self._report(failure, failures)
                if wait is None:
                    return
                await asyncio.sleep(wait)
            except Exception as problem:
                # The edge of a worker: a mistake on one screen must not end the others, nor say nothing.
                self.trouble(self.app.broke(problem))
                return
            else:
                self.trouble("")
                self.fresh()
                return

    def _report(self, failure: Failure, failures: int) -> float | None:
        """Seconds until it is worth asking again; None if that helps nothing."""
        wait = failure.retry_after if isinstance(failure, TooFast) else self.app.client.patience.again_in(failures)
        if isinstance(failure, Away):
            # The application shows it on every screen, with the time until it asks again.
            self.app.retry_in(wait)
        elif self.app.signed_out(failure):
            return None
        again = isinstance(failure, Away | TooFast | Faulty | Malformed)
        self.query_one(Banner).say(failure.sentence, again_in=wait if again else None)
        return wait if again else None
