"""Places in a JSON document, as a route names them: JSON Pointer (RFC 6901), where `*` is each item of an array."""

from typing import Final

from custody.kit.errors import Invalid

EACH: Final = "*"
MAX_STEPS: Final = 8


class InvalidPointer(Invalid):
    """Not a valid place in a JSON document."""


def steps_of(text: str) -> list[str]:
    """Read a pointer such as `/auth/token` or `/*/params/key`, or raise InvalidPointer with a sentence.

    The last step is a field's name; a number is a field's name too, because an array's items are told by `*` alone.
    """
    first, *parts = text.split("/")
    if first or not parts:
        raise InvalidPointer("A place in JSON starts with a slash, such as /auth/token.")
    if len(parts) > MAX_STEPS:
        raise InvalidPointer(f"A place in JSON has at most {MAX_STEPS} steps.")
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        raise InvalidPointer("In a place in JSON ~ is written ~0, and a slash in a name ~1.")
    if parts[-1] == EACH:
        raise InvalidPointer("A place in JSON ends with the name of a field.")
    return [part if part == EACH else part.replace("~1", "/").replace("~0", "~") for part in parts]
