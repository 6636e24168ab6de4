"""Setting up an authenticator as one's first second factor, and the recovery codes that come with it."""

from typing import Final

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from console.dialogs.ask import Ask
from console.widgets.plain_text import PlainText
from console.widgets.qr import Qr
from console.wire.failures import AnswerLost, Failure, Malformed, Unproven

# Beside the picture the words keep so many cells; above and below it there are the frame, the field and the buttons.
_WORDS_CELLS: Final = 44
_ESSENTIALS_SHARE: Final = 0.73
# More than other questions have: half a picture, or half of the codes, would serve nobody.
_ESSENTIALS: Final = "73vh"


class Enrolment(msgspec.Struct, frozen=True, rename="camel"):
    """A seed for an authenticator, shown this once; it counts after its first code."""

    secret: str
    otpauth_uri: str

    def __repr__(self) -> str:
        return "Enrolment()"


class Enrol(Ask[list[str]]):
    """Answers with the recovery codes, none where there were some already, once the authenticator counts."""

    TITLE_TEXT = "Set up an authenticator"
    CONFIRM = "Set it up"
    DEFAULT_CSS = """
    Enrol #seed { height: auto; }
    Enrol #seed Vertical { width: 1fr; height: auto; padding-right: 1; }
    Enrol #seed PlainText { margin-bottom: 1; }
    Enrol #seed #secret { text-style: bold; }
    Enrol #seed #qr { margin-bottom: 0; }
    Enrol #seed #qr.-empty { display: none; }
    Enrol #code { margin-top: 1; padding: 0 1; background: $panel; }
    """

    def __init__(self, enrolment: Enrolment) -> None:
        super().__init__()
        self._enrolment = enrolment

    def essentials(self) -> ComposeResult:
        secret = self._enrolment.secret
        with Horizontal(id="seed"):
            with Vertical():
                yield PlainText("You need a second factor for this. Add this key to an authenticator app:")
                yield PlainText(" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)), id="secret")
                yield PlainText("", id="where")
                yield PlainText("Then type the code that the app shows.")
            yield Qr(id="qr", classes="-empty")

    def fields(self) -> ComposeResult:
        yield Input(placeholder="123456", max_length=16, compact=True, id="code")

    def on_mount(self) -> None:
        self.query_one("#essentials").styles.max_height = _ESSENTIALS
        self.query_one(Qr).show(self._enrolment.otpauth_uri)
        self._draw_picture()
        self.query_one("#code", Input).focus()

    def on_resize(self, event: events.Resize) -> None:
        self._draw_picture()

    async def perform(self) -> list[str]:
        field = self.query_one("#code", Input)
        code = "".join(field.value.split())
        if not code:
            raise Failure("Type the code that the app shows.")
        try:
            return await self.app.client.confirm_authenticator(code)
        except Unproven as refused:
            field.value = ""
            raise Failure(f"That code was not accepted; wait for the next one. {refused.sentence}") from None
        except (AnswerLost, Malformed) as lost:
            field.value = ""
            raise Failure(f"{lost.sentence} The authenticator may already be set up: go back and try again.") from None

    def _draw_picture(self) -> None:
        picture = self.query_one(Qr)
        width, height = picture.cells
        room = self.app.size
        fits = width > 0 and room.width >= width + _WORDS_CELLS and height <= int(room.height * _ESSENTIALS_SHARE)
        picture.set_class(not fits, "-empty")
        where = "Or scan the QR code." if fits else "A larger window shows a QR code."
        self.query_one("#where", PlainText).update(where)


class RecoveryCodes(Ask[bool]):
    """Shows recovery codes until the person shows that they are written down; no key leads away before."""

    TITLE_TEXT = "Write these down now: they are not shown again"
    CONFIRM = "Confirm written down"
    DEFAULT_CSS = """
    RecoveryCodes #codes { text-style: bold; margin: 1 0; }
    RecoveryCodes #cancel { display: none; }
    """

    def __init__(self, codes: list[str]) -> None:
        super().__init__()
        self._codes = codes

    def essentials(self) -> ComposeResult:
        yield PlainText(
            "Each of these recovery codes works once instead of your authenticator, if you lose it. They are lost if "
            "the console ends before you have written them down."
        )
        yield PlainText("\n".join(self._codes), id="codes")

    def fields(self) -> ComposeResult:
        yield Input(placeholder="type the last one from your paper", max_length=64, id="written")

    def on_mount(self) -> None:
        self.query_one("#essentials").styles.max_height = _ESSENTIALS
        self.query_one("#written", Input).focus()

    def action_step_back(self) -> None:
        self.tell("Write them down first, then type the last one.")

    async def perform(self) -> bool:
        if _bare(self.query_one("#written", Input).value) != _bare(self._codes[-1]):
            raise Failure("That is not the last code. Write them down, then type the last one.")
        return True


def _bare(code: str) -> str:
    return "".join(letter for letter in code.casefold() if letter.isalnum())
