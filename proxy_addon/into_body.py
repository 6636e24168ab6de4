"""Put a credential into a body that was held: a field, a place in JSON, a part of a form, a placeholder in a text.

Guarantees: what the agent sent in that place is gone, everything else stays as it was written, and a body that cannot
be read to its end, or could be read in two ways, goes nowhere.
"""

import re
from typing import Final

import msgspec

from custody.credentials.pointers import EACH, steps_of
from custody.kit.errors import CustodyError, Invalid
from proxy_addon.inject import MAX_PAIRS, Placed, TooManyPairs, into_query

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
MAX_PARTS: Final = 1_000
# Bytes and lines of the head of a part.
MAX_PART_HEAD: Final = 8 * 1024
MAX_PART_LINES: Final = 32
MAX_PLACEHOLDERS: Final = 100
# Items or fields that JSON may have in all: each costs some tenths of a microsecond of everybody's time, and memory.
MAX_JSON_PARTS: Final = 250_000
# RFC 2046, 5.1.1.
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
_BOUNDARY_PARAMETER = re.compile(r'boundary=(?:"([^"\\]*)"|([^\s"(),/:;<=>?@\[\\\]]+))', re.IGNORECASE)
_DISPOSITION = re.compile(
    rb"""form-data;\ ?name="([^"\\\r\n]*)"(?:;\ ?filename="[^"\\\r\n]*")?(?:;\ ?filename\*=[^;"\s]*)?""",
    re.IGNORECASE | re.VERBOSE,
)


class BodyUnfit(CustodyError):
    """The body of this route must be JSON, a form or, for `text`, plain text, with the place that the route names."""

    status = 415


class BadJson(Invalid):
    """The body is not valid JSON."""


def into_body(content_type: str | None, content_encoding: str | None, body: bytes, placed: Placed) -> bytes:
    """The body with this text in its place, or BodyUnfit where there is none, or BadJson."""
    kind, charset = _media_type(content_type)
    if charset not in ("", "utf-8", "utf8") or (content_encoding or "").strip().lower() not in ("", "identity"):
        raise BodyUnfit
    way, key, text = placed.said.inject_as, placed.said.inject_key, placed.text
    if way == "text":
        return _into_text(kind, body, key.encode(), text.encode())
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return _into_json(body, steps_of(key) if way == "json" else [key], text)
    if way == "json":
        raise BodyUnfit
    if kind == FORM:
        try:
            return into_query(body, key, text)
        except TooManyPairs:
            raise BodyUnfit from None
    if kind == MULTIPART:
        return _into_parts(content_type or "", body, key, text)
    raise BodyUnfit


def _media_type(content_type: str | None) -> tuple[str, str]:
    """The type and its charset in lower case, each empty when there is none."""
    kind, *parameters = (content_type or "").lower().split(";")
    charsets = {part.strip().partition("=")[2].strip('"') for part in parameters if part.strip().startswith("charset=")}
    return kind.strip(), charsets.pop() if len(charsets) == 1 else " ".join(sorted(charsets))


def _into_json(body: bytes, steps: list[str], text: str) -> bytes:
    """The document with the text at a place; of an array of objects (a JSON-RPC batch) in each of them."""
    is_array = body.lstrip(b" \t\r\n")[:1] == b"["
    if body.count(b",") > MAX_JSON_PARTS and (is_array or body.count(b":") > MAX_JSON_PARTS):
        raise BodyUnfit
    try:
        whole = msgspec.Raw(body.decode().encode())
        if len(steps) == 1 and is_array:
            steps = [EACH, *steps]
        return bytes(_placed_in(whole, steps, msgspec.Raw(msgspec.json.encode(text))))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise (BodyUnfit if isinstance(problem, msgspec.ValidationError) else BadJson) from None


def _placed_in(raw: msgspec.Raw, steps: list[str], value: msgspec.Raw) -> msgspec.Raw:
    """A value with another at a place within it. Raw: numbers, escapes and spaces of what is beside it stay."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if first == EACH:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        if not items or len(items) > MAX_PAIRS:
            raise BodyUnfit
        return msgspec.Raw(msgspec.json.encode([_placed_in(item, rest, value) for item in items]))
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    # What is missing on the way is made.
    fields[first] = _placed_in(fields.get(first, msgspec.Raw(b"{}")), rest, value)
    return msgspec.Raw(msgspec.json.encode(fields))


def _into_text(kind: str, body: bytes, placeholder: bytes, text: bytes) -> bytes:
    """The text with each placeholder replaced; in a markup the value would need the escapes of that markup."""
    if kind not in ("", "text/plain") or not 0 < body.count(placeholder) <= MAX_PLACEHOLDERS:
        raise BodyUnfit
    return body.replace(placeholder, text)


def _into_parts(content_type: str, body: bytes, key: str, text: str) -> bytes:
    """A form of parts (RFC 7578) without the parts of this name, and with one at its end."""
    found = _BOUNDARY_PARAMETER.findall(content_type)
    boundary = "".join(found[0]) if len(found) == 1 else ""
    if not _BOUNDARY.fullmatch(boundary) or '"' in key or "\\" in key:
        raise BodyUnfit
    line = b"--" + boundary.encode()
    # One reader takes a bare line feed for a line's end, another does not; and where a boundary begins is all there is.
    if body.count(line) > MAX_PARTS or line in text.encode():
        raise BodyUnfit
    first, *pieces = (b"\r\n" + body).split(b"\r\n" + line)
    if first or len(pieces) < 2 or body.count(line) != len(pieces) or pieces[-1] not in (b"--", b"--\r\n"):
        raise BodyUnfit
    kept = [piece for piece in pieces[:-1] if key.encode() not in _names_of_part(piece)]
    own = f'\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{text}'.encode()
    return b"".join(line + piece + b"\r\n" for piece in [*kept, own]) + line + b"--\r\n"


def _names_of_part(piece: bytes) -> tuple[bytes, bytes]:
    """The name of a part, told by its one Content-Disposition, as it is written and with its escapes undone."""
    head, empty, _ = piece.partition(b"\r\n\r\n")
    if len(head) > MAX_PART_HEAD or head.count(b"\r\n") > MAX_PART_LINES:
        raise BodyUnfit
    lines = head.split(b"\r\n")
    if not empty or lines[0] or any(line[:1] in (b" ", b"\t") or b"\n" in line or b"\r" in line for line in lines):
        raise BodyUnfit
    named = [line.partition(b":") for line in lines[1:]]
    said = [value.strip() for name, _, value in named if name.strip().lower() == b"content-disposition"]
    match = _DISPOSITION.fullmatch(said[0]) if len(said) == 1 else None
    if match is None:
        raise BodyUnfit
    return match[1], match[1].replace(b"%22", b'"').replace(b"%0D", b"\r").replace(b"%0A", b"\n")
