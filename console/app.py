"""The application: who is signed in, where one is, and whether the service is there. Screens do the rest."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import constants
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.worker import WorkerFailed

from console import themes
from console.application import Application
from console.commands import Commands
from console.dialogs.ask import Ask
from console.dialogs.enrol import RecoveryCodes
from console.entry.settings import Settings
from console.queue.queue_monitor import QueueMonitor
from console.screens.agents import Agents
from console.screens.approvals import Approvals
from console.screens.approver_keys import ApproverKeys
from console.screens.audit import Audit
from console.screens.help import Help
from console.screens.policies import Policies
from console.screens.secrets import Secrets
from console.screens.transactions import Transactions
from console.screens.webhooks import Webhooks
from console.session_control import SessionControl
from console.terminal_title import TerminalTitle
from console.widgets.banner import Banner, with_next_try
from console.widgets.heading import PLACES, Heading, Navigation, Place
from console.wire.api_client import ApiClient
from console.wire.failures import Away, Failure, bug_sentence
from console.wire.signing import RequestSigner
from console.wire.tokens import TokenStore

# So long something to be decided stands on the screen before a key decides: nobody reads faster.
PAUSE_SECONDS: Final = 0.6
# Scrolling through a list with a key held down passes each row in less, so it sends no requests on the way.
REST_SECONDS: Final = 0.15


class Console(Application):
    """The console of one profile."""

    MODES: ClassVar[dict[str, Any]] = {
        "approvals": Approvals,
        "agents": Agents,
        "transactions": Transactions,
        "policies": Policies,
        "webhooks": Webhooks,
        "secrets": Secrets,
        "audit": Audit,
    }
    TITLE = "Custody"
    CSS_PATH = "console.tcss"
    # Ours alone: of what Textual offers, only quitting makes sense here.
    COMMANDS: ClassVar[Any] = {Commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"go('{place}')", name, show=False) for number, (place, name) in enumerate(PLACES, 1)),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("ctrl+p", "command_palette", "Commands", key_display="^p"),
        Binding("ctrl+t", "turn_theme", "Dark or light", show=False),
        Binding("i", "sign_in", "Sign in", show=False),
        Binding("ctrl+o", "sign_out", "Sign out", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], datetime] | None = None,
        wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
        pause: float = PAUSE_SECONDS,
        rest: float = REST_SECONDS,
        every: float | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.wait = wait
        self.pause = pause
        self.rest = rest
        self.every = every
        self.store = TokenStore(settings.folder, settings.profile, settings.url)
        self.store.say = self._told_by_store
        self.session = SessionControl(self)
        self.client = ApiClient(settings.url, read_only=settings.read_only)
        self.client.listener = self._note_away
        self.client.say = lambda sentence: self.tell(sentence, "warning")
        if settings.signing_key and settings.tenant:
            self.client.signer = RequestSigner(settings.signing_key, settings.tenant)
        self.person = self.chosen_agent = None
        self._clock = clock or self.client.now
        self.queue_monitor = QueueMonitor(
            self, self.client, self.now, changed=self._queue_changed, away=self.retry_in, ended=self.signed_out
        )
        self.broken: list[BaseException] = []
        self._window = TerminalTitle(None)
        self._retry_at: datetime | None = None
        self._sentence = ""

    def get_driver_class(self) -> type[Driver]:
        """Choose the driver: in a terminal our own, which draws where a terminal was insisted on."""
        if constants.DRIVER is not None:
            return super().get_driver_class()
        from console.terminal_driver import TerminalDriver  # noqa: PLC0415 - only where there is a terminal

        return TerminalDriver

    def now(self) -> datetime:
        return self._clock()

    @property
    def heading(self) -> str:
        who = self.person.shown if self.person else "not signed in"
        # What is special comes first: the end does not fit into a narrow terminal.
        parts = ["Custody", "READ ONLY"] if self.settings.read_only else ["Custody"]
        return "  ".join([*parts, self.settings.profile, self.settings.url, who])

    def on_mount(self) -> None:
        themes.register(self, self.settings.theme)
        self.set_interval(1, self._count_down)
        self._window = TerminalTitle(self._driver)
        self._window.show(self.waiting)
        self.session.begin()

    async def on_unmount(self) -> None:
        self._window.give_back()
        await self.queue_monitor.close()
        await self.client.close()

    async def act[Result](self, request: Callable[[], Awaitable[Result]]) -> Result:
        return await self.session.act(request)

    def enrol(self) -> None:
        self.session.enrol()

    def action_sign_in(self) -> None:
        """Sign in as a person; a tenant key is left aside for this run."""
        self.session.sign_in()

    def action_sign_out(self) -> None:
        """End the session."""
        self.session.sign_out()

    def tell(self, sentence: str, severity: Any = "information") -> None:
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Ask):
                screen.hold(sentence, severity)
                return
        self.notify(sentence, severity=severity, markup=False)

    def action_go(self, place: str) -> None:
        if self.person is not None:
            self.switch_mode(place)

    async def action_quit(self) -> None:
        """End the console, unless something is on the screen that is shown only once."""
        if isinstance(self.screen, RecoveryCodes):
            self.screen.action_step_back()
        else:
            await super().action_quit()

    def on_place_clicked(self, event: Place.Clicked) -> None:
        self.action_go(event.place)

    def action_help(self) -> None:
        """Show what the keys do."""
        self.push_screen(Help())

    def show_approver_keys(self) -> None:
        self.push_screen(ApproverKeys())

    def enrol_approver_key(self) -> None:
        keys = ApproverKeys()
        self.push_screen(keys)
        keys.call_after_refresh(keys.action_make)

    def action_turn_theme(self) -> None:
        themes.turn(self)

    def retry_in(self, seconds: float) -> None:
        self._retry_at = self.now() + timedelta(seconds=seconds)
        self._count_down()

    def signed_out(self, failure: Failure) -> bool:
        return self.session.signed_out(failure)

    def _queue_changed(self, waiting: int | None) -> None:
        self.waiting = waiting
        self.queue_version += 1

    def _told_by_store(self, sentence: str) -> None:
        # From a thread, for a keyring may take its time.
        self.call_later(self.tell, sentence, "warning")

    def broke(self, problem: BaseException) -> str:
        self.broken.append(problem)
        return bug_sentence(problem)

    def _handle_exception(self, error: Exception) -> None:
        # In a worker only what it was doing is lost. Anywhere else the screen itself is in pieces: better to end.
        if isinstance(error, WorkerFailed):
            self.tell(self.broke(error.error), "error")
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual would print every variable on the way, a credential perhaps among them.
        said = bug_sentence(self._exception) if self._exception else "Internal error of the console."
        self._exit_renderables.append(
            Text(f"{said} The console has ended; the service keeps running. Restart the console to continue.")
        )
        self._close_messages_no_wait()

    def _note_away(self, away: Away | None) -> None:
        if away is None:
            self._retry_at = None
            if self._sentence:
                self.tell(f"{self.settings.url} answers again.")
        self._sentence = away.sentence if away else ""
        self._count_down()

    def _count_down(self) -> None:
        self.away = self._sentence and with_next_try(self._sentence, self._retry_at, self.now())

    def watch_away(self, sentence: str) -> None:
        for screen in self.screen_stack:
            for banner in screen.query(Banner):
                banner.away = sentence

    def watch_waiting(self, waiting: int | None) -> None:
        self.title = f"({waiting:,}) Custody" if waiting else "Custody"
        self._window.show(waiting)
        for screen in self.screen_stack:
            for navigation in screen.query(Navigation):
                navigation.waiting = waiting

    def redraw_heading(self) -> None:
        for heading in self.screen.query(Heading):
            heading.update(self.heading)
