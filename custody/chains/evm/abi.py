"""Strict reading of contract-call arguments: the one canonical encoding, or nothing.

A lenient reader is a hole: two decoders that disagree about the same bytes can be made to disagree about an order. So
padding must be zero, offsets must point where an encoder puts them, and nothing may follow.
"""

from collections.abc import Sequence

WORD = 32
_WIDTHS = {"address": 160, "uint256": 256, "uint160": 160, "uint48": 48, "uint8": 8, "bool": 1}

type Value = int | str | bool | bytes | list[int] | list[bytes]


class NotCanonical(Exception):
    """These bytes are not the canonical encoding of the expected types."""


def decode(types: Sequence[str], body: bytes) -> list[Value]:
    """Read the arguments of a call, or raise NotCanonical."""
    values: list[Value] = []
    tail = WORD * len(types)
    for index, kind in enumerate(types):
        word = _word(body, WORD * index)
        if kind in _WIDTHS or kind == "bytes32":
            values.append(_static(kind, word))
            continue
        if int.from_bytes(word) != tail:
            raise NotCanonical
        value, tail = _dynamic(kind, body, tail)
        values.append(value)
    if tail != len(body):
        raise NotCanonical
    return values


def _static(kind: str, word: bytes) -> Value:
    if kind == "bytes32":
        return word
    number = int.from_bytes(word)
    if number >> _WIDTHS[kind]:
        raise NotCanonical
    if kind == "address":
        return f"0x{number:040x}"
    return bool(number) if kind == "bool" else number


def _dynamic(kind: str, body: bytes, start: int) -> tuple[Value, int]:
    if kind == "bytes":
        return _bytes(body, start)
    count = _count(body, start)
    first = start + WORD
    end = first + WORD * count
    if end > len(body):
        raise NotCanonical
    if kind == "uint256[]":
        return [int.from_bytes(_word(body, first + WORD * index)) for index in range(count)], end
    items: list[bytes] = []
    for index in range(count):
        if int.from_bytes(_word(body, first + WORD * index)) != end - first:
            raise NotCanonical
        item, end = _bytes(body, end)
        items.append(item)
    return items, end


def _bytes(body: bytes, start: int) -> tuple[bytes, int]:
    size = _count(body, start)
    first = start + WORD
    end = first + (size + WORD - 1) // WORD * WORD
    if end > len(body) or any(body[first + size : end]):
        raise NotCanonical
    return body[first : first + size], end


def _count(body: bytes, start: int) -> int:
    count = int.from_bytes(_word(body, start))
    # Compared with what is there before anything is multiplied or allocated: the sender controls this number.
    if count > len(body):
        raise NotCanonical
    return count


def _word(body: bytes, start: int) -> bytes:
    word = body[start : start + WORD]
    if len(word) != WORD:
        raise NotCanonical
    return word
