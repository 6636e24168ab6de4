"""Strict reading of a request's JSON: what the typed decoder lets pass is refused. The api reads bodies with it, and
the signer the bodies that signers signed, so that both read one thing.
"""

import json  # noqa: TID251 - only it shows duplicate keys
from typing import Any

import msgspec

from custody.kit.errors import Invalid

MAX_DEPTH = 64
# A key given twice is named where the body has no more objects; finding it asks Python about each of them.
MAX_SEARCHED = 2_000
# A float holds every whole number up to here.
_EXACT = 2**53


class BadBody(Invalid):
    """The body does not match the schema of this route."""


def decode_as(content: bytes, shape: Any) -> Any:
    """The body as its type has it. To JSON `1.0` is the whole number 1, so it is one here."""
    try:
        return msgspec.json.decode(content, type=shape)
    except msgspec.ValidationError as problem:
        if "got `float`" not in str(problem) or content.count(b".") > MAX_SEARCHED:
            raise
    return msgspec.convert(_whole(msgspec.json.decode(content)), shape)


def _whole(node: Any) -> Any:
    """The same with whole numbers as integers, where a float is exact."""
    if isinstance(node, dict):
        return {name: _whole(part) for name, part in node.items()}
    if isinstance(node, list):
        return [_whole(part) for part in node]
    return int(node) if isinstance(node, float) and node.is_integer() and abs(node) <= _EXACT else node


def look_through(content: bytes) -> None:
    """Refuse what the decoder lets pass: a key twice, numbers and nesting that the signer's frames cannot hold."""
    document = msgspec.json.decode(content)
    try:
        msgspec.msgpack.encode(document)
    except OverflowError:
        # Many parsers would round it, so other readers could see a different number.
        message = "A number is larger than 64 bits; send it as a decimal string."
        raise BadBody(message, code="number_out_of_range") from None
    # Two values for one key: which one is judged, and which one is meant? The decoder keeps the last, so what it kept
    # has fewer strings than what was sent.
    if _strings(content) != _strings(msgspec.json.encode(document)):
        twice = _twice(content) if content.count(b"{") <= MAX_SEARCHED else None
        if twice is None:
            raise BadBody("A key is given twice in one object.", code="duplicate_key")
        raise BadBody(f"The key {twice[:128]!r} is given twice.", code="duplicate_key", fields=[twice[:128]])
    if content.count(b"{") + content.count(b"[") > MAX_DEPTH:
        _refuse_deep(document)


def _strings(valid: bytes) -> int:
    """Twice the number of strings, keys and values, in valid JSON: the quotes that no backslash stands before."""
    unpaired = valid.replace(b"\\\\", b"")
    return unpaired.count(b'"') - unpaired.count(b'\\"')


def _twice(content: bytes) -> str | None:
    """The first key that an object has twice."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        found.extend(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]

    json.loads(content, object_pairs_hook=pairs)
    return found[0] if found else None


def _refuse_deep(document: Any) -> None:
    level = [document] if type(document) is dict or type(document) is list else []
    for _ in range(MAX_DEPTH):
        level = [
            part
            for item in level
            for part in (item.values() if type(item) is dict else item)
            if type(part) is dict or type(part) is list
        ]
        if not level:
            return
    raise BadBody(f"The body is nested deeper than {MAX_DEPTH} levels.", code="nested_too_deeply")
