"""The application, as what it shows knows it: no screen, dialog or widget imports the one that imports them all."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from textual.app import App
from textual.reactive import reactive

from console.entry.person import Person
from console.entry.settings import Settings
from console.queue.queue_monitor import QueueMonitor
from console.wire.api_client import ApiClient
from console.wire.failures import Failure
from console.wire.tokens import TokenStore


class Application(App[None]):
    """The parts of the application that screens use, beside those of every Textual application; `app.py` makes it."""

    settings: Settings
    store: TokenStore
    client: ApiClient
    queue_monitor: QueueMonitor
    person: Person | None
    # Whose things the agents, transactions and policies screens show: chosen on one, kept on the others.
    chosen_agent: str | None
    wait: Callable[[float], Awaitable[object]]
    pause: float
    """Seconds that something to be decided stands on the screen before a key decides."""
    rest: float
    """Seconds that the cursor stays on a row before its details are fetched."""
    every: float | None
    """Interval at which a visible screen loads again; without it each screen has its own."""
    waiting: reactive[int | None] = reactive(None, repaint=False)
    """Number of approvals that wait for somebody."""
    queue_version: reactive[int] = reactive(0, repaint=False)
    """Rises whenever the queue has changed, or what is known of the watch over it."""
    away: reactive[str] = reactive("", repaint=False)
    """A sentence about the service that cannot be reached; empty while it answers."""

    @property
    @abstractmethod
    def heading(self) -> str:
        """The first line of every screen."""

    @abstractmethod
    def now(self) -> datetime:
        """The service's time."""

    @abstractmethod
    async def act[Result](self, request: Callable[[], Awaitable[Result]]) -> Result:
        """Do something for the person; where a recent second factor is wanted, ask for it and do it then.

        Call it from a worker. Raises what the request raises.
        """

    @abstractmethod
    def tell(self, sentence: str, severity: Any = "information") -> None:
        """Say something in passing; where a question stands, once that has gone."""

    @abstractmethod
    def signed_out(self, failure: Failure) -> bool:
        """Tell whether a failure means that the person must sign in again; then ask for that."""

    @abstractmethod
    def retry_in(self, seconds: float) -> None:
        """The service is asked again in so many seconds."""

    @abstractmethod
    def broke(self, problem: BaseException) -> str:
        """Note a mistake in the console itself; gives what is said of it."""

    @abstractmethod
    def redraw_heading(self) -> None:
        """After somebody signed in or out."""

    @abstractmethod
    def action_go(self, place: str) -> None:
        """Go to a place, once somebody is signed in."""

    @abstractmethod
    def enrol(self) -> None:
        """Set up an authenticator, or another in place of it."""

    @abstractmethod
    def show_approver_keys(self) -> None:
        """The keys by which the person votes."""

    @abstractmethod
    def enrol_approver_key(self) -> None:
        """The same, with making one begun."""
