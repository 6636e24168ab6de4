"""Showing a second factor at the terminal, or from standard input."""

import sys
from typing import Final

from console.wire.api_client import ApiClient
from console.wire.failures import AnswerLost, Failure, Malformed, MfaRequired, Unproven
from tenant_command.printing import Printer

_TOTP_DIGITS: Final = 6
_HERE: Final = {"totp": "the code of your authenticator", "recovery": "a recovery code"}
_TRIES: Final = 3
KEY_HAS_NO_FACTOR: Final = "A tenant key has no second factor: sign in as a person, with `custody login`."


async def show_factor(client: ApiClient, out: Printer, needed: MfaRequired) -> None:
    """Ask for a code until one is taken; raises Failure where nobody can be asked, or none was taken."""
    can = [words for method, words in _HERE.items() if method in needed.methods]
    if not can:
        raise unshown(needed, "None of your factors can be shown here: set one up in `custody console`.")
    if not sys.stdin.isatty():
        raise unshown(needed, "Show it first: custody step-up")
    out.warn(needed.sentence)
    for left in reversed(range(_TRIES)):
        try:
            await step_up(client, out.answer(f"Type {' or '.join(can)}"))
        except Unproven as refused:
            if not left:
                raise
            out.warn(refused.sentence)
        else:
            return


def unshown(needed: MfaRequired, cure: str) -> MfaRequired:
    """The same refusal, which programs know by its code, with what to do about it."""
    return MfaRequired(f"{needed.sentence} {cure}", status=needed.status, code=needed.code, data=needed.data)


async def step_up(client: ApiClient, said: str) -> None:
    """Show one code; raises Failure."""
    code = "".join(said.split())
    if not code:
        raise Failure("There is no code in what was typed.")
    is_totp = len(code) == _TOTP_DIGITS and code.isascii() and code.isdecimal()
    try:
        await client.step_up("totp" if is_totp else "recovery-codes", code)
    except (AnswerLost, Malformed) as lost:
        raise Failure(f"{lost.sentence} The code may be used up: type the next one.") from None
