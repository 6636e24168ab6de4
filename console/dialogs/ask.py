"""The base of every question to the person: drawn before it can be answered, open until its act is done."""

import time
from abc import abstractmethod
from typing import Any, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from console.application import Application
from console.dialogs.closing import Closing
from console.widgets.plain_text import PlainText
from console.widgets.too_small import HEIGHTS, WIDTHS, TooSmall
from console.wire.api_client import new_key
from console.wire.failures import AnswerLost, Failure, Malformed

# After so long one may leave a question whose answer does not come.
_PATIENCE_SECONDS: Final = 3.0
# So much of what was told while a question stood is told afterwards: the newest, each once.
_HELD: Final = 5


class Essentials(VerticalScroll):
    """The lines that the person must have seen. It goes on page by page: nothing jumps over what is between."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("end", "page_down", show=False)]


class Ask[Result](Closing[Result | None], ModalScreen[Result | None]):
    """A question with essentials, perhaps fields, and two buttons. Answers None when one steps back.

    Enter confirms, but not before the essentials stand on the screen: a key pressed too early decides nothing. What is
    confirmed happens inside, under one idempotency key, so that nothing typed is lost when it fails and nothing
    happens twice when an answer is.
    """

    TITLE_TEXT: str = ""
    CONFIRM: str = "Confirm"
    VARIANT: Any = "primary"
    # What is said to somebody who does not wait for the answer; nothing where nothing is changed.
    LEAVING: str = "The outcome is unknown."
    BINDINGS: ClassVar[list[BindingType]] = [
        # Not before everybody else: in a field Enter comes after the letters that were typed before it, or what is
        # confirmed would lack the last of them.
        Binding("enter", "confirm", "Confirm"),
        Binding("escape", "step_back", "Cancel"),
    ]

    HORIZONTAL_BREAKPOINTS = WIDTHS
    # In a low terminal the frame gives way, so that essentials, trouble and buttons are all seen.
    VERTICAL_BREAKPOINTS = [*HEIGHTS, (34, "-tall")]  # noqa: RUF012 - as Textual declares it

    app: Application

    def __init__(self) -> None:
        super().__init__()
        self.key = new_key()
        self._is_armed = False
        self._busy = False
        self._asked_at = 0.0
        self._held: list[tuple[str, Any]] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="question"):
            yield PlainText(self.TITLE_TEXT, id="question-title")
            with Essentials(id="essentials", can_focus=True):
                yield from self.essentials()
            yield from self.fields()
            yield PlainText("", id="question-trouble")
            with Horizontal(id="answers"):
                yield Button(f"{self.CONFIRM} (Enter)", variant=self.VARIANT, id="confirm")
                yield Button("Cancel (Esc)", id="cancel")
        yield TooSmall()

    @abstractmethod
    def essentials(self) -> ComposeResult:
        """Compose the part that the person must have seen."""

    def fields(self) -> ComposeResult:
        """Compose the fields that the person may fill in."""
        yield from ()

    @abstractmethod
    async def perform(self) -> Result:
        """Do it, and give what came of it; raise Failure to stay open with its sentence."""

    async def send[Shape](self, method: str, path: str, shape: type[Shape], body: Any = None) -> Shape:
        """Change something under this question's key, after a second factor where one is wanted."""
        return await self.app.act(lambda: self.app.client.send(method, path, shape, body, key=self.key))

    def conclude(self, result: Result) -> None:
        """It happened: close with what came of it."""
        self.close(result)

    def hold(self, sentence: str, severity: Any) -> None:
        """Keep what is told in passing, which would be gone before the question is."""
        told = (sentence, severity)
        self._held = [*(one for one in self._held if one != told), told][-_HELD:]

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        gone = super().dismiss(result)
        for sentence, severity in self._held:
            self.app.tell(sentence, severity)
        return gone

    def on_mount(self) -> None:
        # Nothing lies over a question, or shines through; what is told while it stands is held.
        for told in self.app._notifications:
            if told.severity != "information":
                self.hold(told.message, told.severity)
        self.app.clear_notifications()
        for screen in self.app.screen_stack:
            screen.query("ToastHolder").remove()
        self.begin()

    def begin(self) -> None:
        """From when on it may be answered."""
        self.call_after_refresh(self._arm)

    def _arm(self) -> None:
        self._is_armed = True

    @property
    def confirm_key(self) -> str:
        """The key that confirms, as the button names it."""
        return "Enter"

    @property
    def stepping_back(self) -> bool:
        """True if Enter is pressed on the button that steps back."""
        return isinstance(self.focused, Button) and self.focused.id == "cancel"

    @property
    def _tires(self) -> bool:
        return self._busy and time.monotonic() - self._asked_at >= _PATIENCE_SECONDS

    def action_step_back(self) -> None:
        if self._tires:
            self.workers.cancel_group(self, "ask")
            if self.LEAVING:
                self.app.tell(self.LEAVING, "warning")
        if not self._busy or self._tires:
            self.close(None)

    def action_confirm(self) -> None:
        if self.stepping_back:
            self.action_step_back()
        elif self._is_armed and not self._busy and not self.query_one(TooSmall).display:
            self.begin_asking()

    def begin_asking(self) -> None:
        """It is confirmed: do it."""
        # From now on, not from when the worker begins: what comes between was not read.
        self._busy, self._asked_at = True, time.monotonic()
        self._perform()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_confirm()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "cancel":
            self.action_step_back()
        else:
            self.action_confirm()

    @work(exclusive=True, group="ask")
    async def _perform(self) -> None:
        self._say("Asking…", busy=True)
        try:
            result = await self.perform()
        except (AnswerLost, Malformed) as failure:
            key = self.confirm_key
            again = f"The outcome is unknown: {key} retries safely, it takes effect at most once."
            # Where nothing is changed, nothing can have happened.
            self._say(f"{failure.sentence} {again if self.LEAVING else f'{key} asks again.'}")
        except Failure as failure:
            self._say(failure.sentence)
            self.app.signed_out(failure)
        except Exception as problem:
            # The edge of a worker: the dialog stays usable, and one can step back from it.
            self._say(self.app.broke(problem))
        else:
            self.conclude(result)

    def tell(self, sentence: str) -> None:
        """Say something above the buttons."""
        self.query_one("#question-trouble", PlainText).update(sentence)

    def _tell_slow(self) -> None:
        if self._tires:
            self.tell("Asking… Esc leaves." + (" It may still take effect." if self.LEAVING else ""))

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        self._busy = busy
        if busy:
            self._asked_at = time.monotonic()
            self.set_timer(_PATIENCE_SECONDS + 0.1, self._tell_slow)
        self.tell(sentence)
        self.query_one("#confirm", Button).disabled = busy
