"""Signing in: with what is there, else by a code that one approves in a browser. RFC 8628."""

from datetime import datetime, timedelta
from typing import ClassVar, Final, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input

from console.application import Application
from console.dialogs.closing import Closing
from console.entry.device_flow import DeviceCode, Ended
from console.entry.sign_in_flow import SignedIn, SignInFlow, TenantUnknown, Way
from console.widgets.heading import Heading
from console.widgets.plain_text import PlainText
from console.widgets.qr import Qr
from console.wire.api_client import ApiClient
from console.wire.connections import is_loopback
from console.wire.failures import Failure
from words.texts.moments import span

# Beside a QR code the words keep so many cells; above and below it there are a heading and a footer.
_WORDS_CELLS: Final = 44
_FRAME_CELLS: Final = 2
_ROUNDED_UP: Final = timedelta(seconds=0.999)
_LINES = ("lead", "reason", "status", "code", "address", "until", "trouble", "small")

State = Literal["asking", "code", "ended", "refused", "tenant"]
# Where a key does something; elsewhere the footer does not show it.
_KEYS: Final[dict[str, tuple[State, ...]]] = {
    "new_code": ("ended",),
    "with_code": ("refused",),
    "again": ("refused",),
    "copy": ("code",),
    "leave": ("tenant",),
}


class SignIn(Closing[SignedIn | None]):
    """Answers who has signed in; None where one may step back, and does."""

    # The field that is mostly hidden must not swallow the keys.
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new_code", "New code"),
        Binding("c", "with_code", "Sign in with a code"),
        Binding("r", "again", "Try again"),
        Binding("o", "copy", "Copy the address"),
        Binding("escape", "step_back", "Back"),
        # While letters go into the field, q does.
        Binding("ctrl+q", "leave", "Quit"),
    ]

    app: Application

    def __init__(self, reason: str = "", *, ways: tuple[Way, ...], may_step_back: bool = False) -> None:
        super().__init__()
        self._reason = reason
        self._ways = ways
        self._may_step_back = may_step_back
        self._state: State = "asking"
        self._code: DeviceCode | None = None
        self._ends_at: datetime | None = None
        self._again: tuple[str, datetime] | None = None

    def compose(self) -> ComposeResult:
        yield Heading(self.app.heading, id="heading")
        with Horizontal(id="door"):
            with VerticalScroll(id="words", can_focus=False):
                for name in _LINES:
                    yield PlainText("", id=name, classes="-empty")
                yield Input(placeholder="the tenant's id", max_length=128, id="tenant", classes="-empty", disabled=True)
            yield Qr(id="qr", classes="-empty")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._write("lead", f"Sign in to {self.app.settings.url}")
        self.set_interval(1, self._draw_times)
        self._sign_in(self._ways)

    def on_resize(self) -> None:
        self._draw_picture()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "step_back":
            return self._may_step_back
        return self._state in _KEYS[action] if action in _KEYS else super().check_action(action, parameters)

    def action_new_code(self) -> None:
        self._reason = ""
        self._sign_in(())

    def action_with_code(self) -> None:
        self.action_new_code()

    def action_again(self) -> None:
        self._reason = ""
        self._sign_in(self._ways)

    def action_copy(self) -> None:
        if self._code is not None:
            self.app.copy_to_clipboard(self._code.address)
            self.app.tell(f"Copied, if this terminal allows it: {self._code.address}")

    def action_leave(self) -> None:
        self.app.exit()

    def action_step_back(self) -> None:
        self.close(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if tenant := event.value.strip():
            self._reason = ""
            self._sign_in((), tenant)
        else:
            self.app.tell("Type the id of a tenant first.")

    @work(exclusive=True, group="sign-in")
    async def _sign_in(self, ways: tuple[Way, ...], tenant: str = "") -> None:
        self._become("asking", "Contacting the service…")
        settings = self.app.settings
        client = ApiClient(settings.url, read_only=settings.read_only, patience=self.app.client.patience)
        try:
            signed_in = await self._enter(SignInFlow(settings, self.app.store, client, self._wait), ways, tenant)
        except TenantUnknown as unknown:
            self.query_one("#tenant", Input).value = unknown.named
            self._become("tenant", unknown.sentence)
        except Ended as ended:
            self._become("ended", f"{ended} Press n for a new one.")
        except Failure as failure:
            self._become("refused", f"{failure.sentence} Press r to try again, or c to sign in with a code.")
        else:
            self.close(signed_in)
        finally:
            await client.close()

    async def _enter(self, flow: SignInFlow, ways: tuple[Way, ...], tenant: str) -> SignedIn:
        if signed_in := await flow.with_stored_credential(ways):
            return signed_in
        self._reason = self._reason or flow.reason
        code = await flow.code(tenant)
        self._show(code)
        return await flow.with_code(code)

    async def _wait(self, seconds: float, trouble: str) -> None:
        now = self.app.now()
        if self._ends_at is not None and now >= self._ends_at:
            raise Ended("This code has expired.")
        self._again = (trouble, now + timedelta(seconds=seconds)) if trouble else None
        self._draw_times()
        await self.app.wait(seconds)

    def _show(self, code: DeviceCode) -> None:
        # An address of this machine would lead a telephone to itself.
        here = _is_here(code.verification_uri)
        self._code, self._ends_at = code, self.app.now() + code.lasts
        self._become(
            "code",
            f"Open this address in a browser{' on this machine' if here else ', on any device,'} and sign in there. "
            + (
                "It shows a code: approve it only if it is this one." if code.is_in_address else "Type this code there."
            ),
        )
        self._write("code", " ".join(code.user_code))
        self._write("address", code.address)
        self.query_one(Qr).show("" if here else code.address)
        self._draw_picture()

    def _become(self, state: State, sentence: str) -> None:
        """Draw another state: of the one before nothing stays that is no longer true."""
        self._state, self._again = state, None
        if state != "code":
            self._code = self._ends_at = None
            for name in ("code", "address", "until", "small"):
                self._write(name, "")
        field = self.query_one("#tenant", Input)
        field.set_class(state != "tenant", "-empty")
        field.disabled = state != "tenant"
        if state == "tenant":
            field.focus()
        self._write("reason", self._reason)
        self._write("status", sentence)
        self._draw_times()
        self._draw_picture()
        self.refresh_bindings()

    def _draw_times(self) -> None:
        now = self.app.now()
        if self._again is None:
            self._write("trouble", "")
        else:
            trouble, at = self._again
            self._write("trouble", f"{trouble} Retrying in {span(at - now + _ROUNDED_UP)}.")
        if self._ends_at is not None:
            self._write("until", f"This code expires in {span(self._ends_at - now)}.")

    def _draw_picture(self) -> None:
        picture = self.query_one(Qr)
        width, height = picture.cells
        fits = self.size.width >= width + _WORDS_CELLS and self.size.height >= height + _FRAME_CELLS
        shown = self._state == "code" and width > 0
        picture.set_class(not (shown and fits), "-empty")
        self._write("small", "A larger window shows a QR code of the address." if shown and not fits else "")

    def _write(self, name: str, text: str) -> None:
        line = self.query_one(f"#{name}", PlainText)
        line.update(text)
        line.set_class(not text, "-empty")


def _is_here(address: str) -> bool:
    try:
        return is_loopback(address)
    except ValueError:
        return False
