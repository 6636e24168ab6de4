"""Forms, `application/x-www-form-urlencoded`, as stock OAuth clients send them; as strict as JSON is.

The whole is bounded when it is received (`bodies.py`), and takes time in proportion to it.
"""

import re
from urllib.parse import unquote_plus

from custody.kit.errors import Invalid

MEDIA = "application/x-www-form-urlencoded"
# No route that takes a form has half as many.
MAX_FIELDS = 32
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class BadForm(Invalid):
    """The form is malformed: send name=value pairs joined by &, percent-encoded in UTF-8."""


def fields_of(content: bytes) -> dict[str, str]:
    """The fields of a form, each once. One without a value was not sent, says RFC 6749 3.1."""
    if content.count(b"&") >= MAX_FIELDS:
        raise BadForm(f"The form has more than {MAX_FIELDS} fields.")
    given: dict[str, str] = {}
    for pair in content.split(b"&"):
        name, _, value = map(_text, pair.partition(b"="))
        if name in given:
            message = f"The field {name[:128]!r} is given twice; send it once."
            raise BadForm(message, code="duplicate_key", fields=[name[:128]])
        given[name] = value
    return {name: value for name, value in given.items() if value}


def _text(part: bytes) -> str:
    try:
        text = part.decode("ascii")
        if _BROKEN_ESCAPE.search(text):
            raise BadForm
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise BadForm from None
