"""`command`: a program of the operator's, called as we are: `open` with a head on standard input, or `wrap NAME`.

The head that it gets has one line of a holder, its own. What it may write is bounded, and nothing of it stays.
"""

import binascii
import os
import re
from base64 import b64decode
from time import monotonic

from custody.kit.key_head import KEY_BYTES, MAX_HOLDER_BLOB, MAX_HOLDER_NAME, Holder, write_head
from custody.kit.opener_settings import OPENER
from openers import bounded
from openers.files import trusted_code
from openers.outcomes import Away, BadSettings, NotOpened, NotOurs, Refused

_EXAMPLE = "/usr/local/lib/custody/open-keys"
_LINE = re.compile(rb"([!-~]{1,512}) ([A-Za-z0-9+/=]{1,10924})\n?")
_LONGEST_LINE = MAX_HOLDER_NAME + len(" \n") + 4 * -(-MAX_HOLDER_BLOB // 3)
_OUTCOMES: dict[int, type[NotOpened]] = {kind.status: kind for kind in (Away, Refused, NotOurs, BadSettings)}


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Have the key of a file wrapped; the name that the program gives its holder, and what it made."""
    said = _LINE.fullmatch(_ask(["wrap", name], f"{file}\n".encode() + key, _LONGEST_LINE))
    try:
        blob = b64decode(said[2], validate=True) if said else b""
    except binascii.Error:
        blob = b""
    if said is None or not blob or len(blob) > MAX_HOLDER_BLOB:
        raise NotOurs(f"The program of {OPENER} did not answer `wrap` with a line of a name and base64.")
    return said[1].decode("ascii"), blob


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have the key of a file opened."""
    key = _ask(["open"], write_head(file, (Holder("command", name, blob),)).text, KEY_BYTES)
    if len(key) != KEY_BYTES:
        raise NotOurs(f"The program of {OPENER} wrote {len(key)} bytes to `open`, and not {KEY_BYTES}.")
    return key


def _ask(words: list[str], given: bytes, most: int) -> bytes:
    program = trusted_code(OPENER, _EXAMPLE)
    until = monotonic() + bounded.LONGEST_SECONDS
    try:
        ended = bounded.run([program, *words], given, most=most, until=until, environment=os.environ)
    except bounded.NotStarted as problem:
        raise BadSettings(f"{OPENER}: it cannot be executed. {problem}") from None
    except bounded.SaidTooMuch:
        raise NotOurs(f"The program of {OPENER} wrote more than {most} bytes to `{words[0]}`.") from None
    except bounded.TookTooLong:
        raise Away(f"The program of {OPENER} did not end in {bounded.LONGEST_SECONDS:.0f} s.") from None
    if ended.status in _OUTCOMES:
        raise _OUTCOMES[ended.status](ended.complaint or f"The program of {OPENER} ended with {ended.status}.")
    if ended.status < 0:
        # By somebody, or for want of memory: it has said nothing of the holder.
        raise Away(f"The program of {OPENER} was killed by signal {-ended.status}.")
    if ended.status:
        raise BadSettings(
            f"The program of {OPENER} ended with {ended.status}, and may with 0, 65, 75, 77 or 78. {ended.complaint}"
        )
    return ended.output
