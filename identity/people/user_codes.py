"""The code that a device shows and a person types: `XXXX-XXXX`. RFC 8628 6.1."""

import re
from typing import Final

# No vowels, so that no code is a word; of two characters that look alike at most one.
ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ3479"
LENGTH: Final = 8
_HALF: Final = LENGTH // 2
_SEPARATORS = re.compile(r"[\s\-\u2010-\u2015]+")
_CODE = re.compile(rf"[{ALPHABET}]{{{LENGTH}}}\Z")


def spell(letters: str) -> str:
    """Eight characters as they are shown, stored and compared."""
    return f"{letters[:_HALF]}-{letters[_HALF:]}"


def normalise(typed: str) -> str | None:
    """A code as people type it, in either case, with blanks or without the hyphen; None where it can be none."""
    letters = _SEPARATORS.sub("", typed).upper()
    return spell(letters) if _CODE.match(letters) else None
