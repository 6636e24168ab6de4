"""What every screen shares: heading, navigation, banner, footer, and how it gets what it shows."""

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer
from textual.worker import Worker

from console.failures import Away, Failure, TooFast, back_off
from console.widgets.banner import Banner
from console.widgets.heading import Heading, Navigation

if TYPE_CHECKING:
    from console.app import Console


class Page(Screen[None]):
    """A place of the navigation. It loads when one comes to it, and again every `EVERY_SECONDS` while it is seen.

    What is on the screen stays while the service is away; the banner says how old it is.
    """

    PLACE: ClassVar[str] = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - as Textual declares it
    EVERY_SECONDS: ClassVar[float] = 10.0
    app: "Console"

    def compose(self) -> ComposeResult:
        yield Heading(self.app.heading, id="heading")
        yield Navigation(self.PLACE)
        yield Banner()
        with Vertical(id="body"):
            yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """What this screen shows."""
        raise NotImplementedError

    async def load(self) -> None:
        """Ask for what is shown, and show it; a Failure goes to the banner."""

    def on_mount(self) -> None:
        self.set_interval(self.EVERY_SECONDS, self._tick)

    def on_screen_resume(self) -> None:
        self.reload()

    def reload(self) -> Worker[None]:
        """Load anew; what was being loaded is given up."""
        return self.run_worker(self._loaded, group="load", exclusive=True)

    def trouble(self, sentence: str) -> None:
        """Say what is wrong with this screen; nothing, when it is empty."""
        self.query_one(Banner).trouble = sentence

    def _tick(self) -> None:
        if self.is_current and not any(w.group == "load" and w.node is self and w.is_running for w in self.workers):
            self.reload()

    async def _loaded(self) -> None:
        failures = 0
        while True:
            try:
                await self.load()
            except Failure as failure:
                failures += 1
                wait = self._told(failure, failures)
                if wait is None:
                    return
                await asyncio.sleep(wait)
            else:
                self.trouble("")
                return

    def _told(self, failure: Failure, failures: int) -> int | None:
        """Seconds until it is worth asking again; None if that helps nothing."""
        if isinstance(failure, Away):
            # The application shows it on every screen, with the time until it asks again.
            wait = back_off(failures)
            self.app.retry_in(wait)
            return wait
        if self.app.signed_out(failure):
            return None
        self.trouble(failure.sentence)
        return failure.retry_after if isinstance(failure, TooFast) else None
