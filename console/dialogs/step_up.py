"""Showing a second factor where the API wants a recent one."""

from datetime import timedelta
from typing import Final

from textual.app import ComposeResult
from textual.widgets import Button, Input

from console.dialogs.ask import Ask
from console.widgets.plain_text import PlainText
from console.wire.failures import AnswerLost, Failure, Malformed, MfaRequired, TooFast, Unproven
from words.texts.moments import span

_TOTP_DIGITS: Final = 6
_NOT_TAKEN: Final = "That code was not accepted: it is wrong, already used, or too old. Wait for the next one."
_ELSEWHERE: Final = {"passkey": "A passkey", "sms": "A code by text message"}


class StepUp(Ask[bool]):
    """Answers True once the session has a fresh second factor."""

    TITLE_TEXT = "Verify a second factor"
    CONFIRM = "Show it"
    LEAVING = ""
    DEFAULT_CSS = "StepUp #code { margin-top: 1; }"

    def __init__(self, needed: MfaRequired) -> None:
        super().__init__()
        self._needed = needed
        self._can = not {"totp", "recovery"}.isdisjoint(needed.methods)

    def essentials(self) -> ComposeResult:
        yield PlainText(self._needed.sentence)
        yield PlainText(ways(self._needed.methods), id="ways")

    def fields(self) -> ComposeResult:
        if self._can:
            yield Input(placeholder="123456, or a recovery code", max_length=64, id="code")

    def on_mount(self) -> None:
        if self._can:
            self.query_one("#code", Input).focus()
        else:
            self.query_one("#confirm", Button).display = False

    def action_confirm(self) -> None:
        # Without a factor there is nothing to show: Enter steps back like Esc.
        if self._can:
            super().action_confirm()
        else:
            self.action_step_back()

    async def perform(self) -> bool:
        field = self.query_one("#code", Input)
        code = "".join(field.value.split())
        if not code:
            raise Failure("Type a code first.")
        totp = len(code) == _TOTP_DIGITS and code.isascii() and code.isdecimal()
        try:
            await self.app.client.step_up("totp" if totp else "recovery-codes", code)
        except Unproven as refused:
            field.value = ""
            raise Failure(
                f"{_NOT_TAKEN if totp else 'That recovery code was not accepted.'} {refused.sentence}"
            ) from None
        except TooFast as refused:
            raise Failure(f"{refused.sentence} Try again in {span(timedelta(seconds=refused.retry_after))}.") from None
        except (AnswerLost, Malformed) as lost:
            field.value = ""
            raise Failure(f"{lost.sentence} The code may be used up: type the next one.") from None
        return True


def ways(methods: list[str]) -> str:
    """In words: what this person can show here."""
    here = {"totp": "a code from your authenticator", "recovery": "a recovery code"}
    can = " or ".join(name for method, name in here.items() if method in methods)
    first = f"Type {can}." if can else "The console supports none of your factors: enrol an authenticator as well."
    others = [name for method, name in _ELSEWHERE.items() if method in methods]
    return " ".join([first, *(f"{name} works only in the browser." for name in others)])
