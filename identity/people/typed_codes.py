"""Codes as people type and paste them: apps and messages show `123 456`, with a blank that may be any of Unicode's.

Only what no code has is left out, so what is compared is never another code. Every try is counted, whatever it is.
"""

import re

# White space of every kind, and what has no width at all: pages and messages hide it in what one copies.
_BLANKS = re.compile(r"[\s\u200b\u2060\ufeff]+")
_HYPHENS = re.compile(r"[\-\u2010-\u2015\u2212]+")


def read_digits(typed: str) -> str:
    """Leave the blanks out of a code of digits."""
    return _BLANKS.sub("", typed)


def read_recovery_code(typed: str) -> str:
    """Leave blanks and hyphens out of a recovery code, in lower case."""
    return _HYPHENS.sub("", _BLANKS.sub("", typed)).lower()
