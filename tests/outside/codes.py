"""The code that a message brings, found as a person finds it: the only six digits that stand alone."""

import re

_SIX_DIGITS = re.compile(r"(?<![0-9A-Za-z#])[0-9]{6}(?![0-9A-Za-z])")


def code_in(text: str) -> str:
    """The code; a text with none, or with two that differ, fails the test."""
    found = set(_SIX_DIGITS.findall(text))
    assert len(found) == 1, f"{len(found)} codes in {text!r}"
    return found.pop()
