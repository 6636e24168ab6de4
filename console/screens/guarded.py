"""A place that only people see, after a recent second factor."""

from abc import abstractmethod
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from console.screens.page import Page
from console.widgets.session_needed import SessionNeeded
from console.wire.failures import Failure, Forbidden, MfaRequired
from console.work import work


class GuardedPage(Page):
    """A screen whose content is hidden behind a sentence until the API permits it for this session."""

    WHAT: ClassVar[str] = ""
    # A list that is not seen must not get the keys.
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "show_factor", "Verify a second factor")]

    def __init__(self) -> None:
        super().__init__()
        self._factor_wanted = False
        self._keys = frozenset[str]()

    def body(self) -> ComposeResult:
        yield SessionNeeded(self.WHAT)
        with Vertical(id="guarded"):
            yield from self.inside()

    @abstractmethod
    def inside(self) -> ComposeResult:
        """Compose the content for callers that the API lets in."""

    @abstractmethod
    async def ask(self) -> None:
        """Ask for what is shown, and show it."""

    async def load(self) -> None:
        notice, credential = self.query_one(SessionNeeded), self.app.client.credential
        if credential is None or not credential.is_session:
            # The API would say no each time; it need not be asked.
            self._factor_wanted = False
            notice.for_key()
            self._close()
            self._refresh_keys()
            return
        try:
            # Until there is an answer, what the last one said is so: Enter serves while the clock is asking.
            await self.ask()
        except Forbidden as failure:
            self._factor_wanted = isinstance(failure, MfaRequired)
            notice.for_person(failure)
            self._close()
        else:
            self._factor_wanted = False
            notice.open()
            self._open()
        self._refresh_keys()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter" and self.has_class("-closed"):
            return False
        return self._factor_wanted if action == "show_factor" else super().check_action(action, parameters)

    def action_show_factor(self) -> None:
        """Ask for the second factor, then for what needs it. Never by itself: nobody wants a question from a clock."""
        work(self, "factor", self._factor_shown)

    async def _factor_shown(self) -> None:
        try:
            await self.app.act(self.ask)
        except Failure as failure:
            if not isinstance(failure, MfaRequired) and not self.app.signed_out(failure):
                self.app.tell(failure.sentence, "warning")
        else:
            self.reload()

    def _refresh_keys(self) -> None:
        """Redraw the footer only when a key appears or disappears: it flickers meanwhile."""
        keys = frozenset(self.active_bindings)
        if keys != self._keys:
            self._keys = keys
            self.refresh_bindings()

    def _close(self) -> None:
        self.set_class(True, "-closed")
        self.set_focus(None)

    def _open(self) -> None:
        if self.has_class("-closed") or self.focused is None:
            self.set_class(False, "-closed")
            for widget in self.query("#guarded Listing"):
                widget.focus()
                break
