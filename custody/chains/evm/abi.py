"""Strict reading of contract-call arguments: the one canonical encoding, what deviates from it, or nothing.

A lenient reader is a hole: two decoders that disagree about the same bytes can be made to disagree about an order. So
offsets must point where an encoder puts them. What a contract may ignore, or refuse, is read and told: bytes behind the
arguments, and words that hold more than their type.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

WORD = 32
# Types of one word, by their width in bits, or for those that begin at the left in bytes.
_WIDTHS = {"address": 160, "bool": 1, **{f"uint{bits}": bits for bits in range(8, 257, 8)}}
_SIGNED = {f"int{bits}": bits for bits in range(8, 257, 8)}
_SIZES = {f"bytes{size}": size for size in range(1, 33)}
WORDS = frozenset(_WIDTHS | _SIGNED | _SIZES)

# A word by its name, `bytes`, `string`, a tuple that holds one of these somewhere, or a list of what each item of an
# array holds. What has a fixed length stands word by word in what it is part of: `["address", "uint8"]` are pairs.
type Type = str | tuple[Type, ...] | list[Type]
type Value = int | str | bool | bytes | list[Value] | tuple[Value, ...]


class NotCanonical(Exception):
    """These bytes are not the canonical encoding of the expected types."""


class Arguments(msgspec.Struct, frozen=True):
    """The values, whether a word or padding held more than its type, and how many bytes stand behind."""

    values: tuple[Any, ...]
    dirty: bool
    behind: int


def decode(types: Sequence[Type], body: bytes) -> Arguments:
    """Read the arguments of a call, or raise NotCanonical."""
    reader = _Reader(body)
    values, end = reader.members(types, 0)
    return Arguments(values, reader.dirty, len(body) - end)


class _Reader:
    """Every byte is read once at most, for each offset must point to where the value before it ended."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.dirty = False

    def members(self, types: Sequence[Type], start: int) -> tuple[tuple[Value, ...], int]:
        """Read a tuple whose head begins at `start`; gives the values and where the last of them ends."""
        values: list[Value] = []
        tail = start + WORD * len(types)
        for place, each in enumerate(types):
            word = self.word(start + WORD * place)
            if isinstance(each, str) and each in WORDS:
                values.append(self.static(each, word))
                continue
            if int.from_bytes(word) != tail - start:
                raise NotCanonical
            value, tail = self.value(each, tail)
            values.append(value)
        return tuple(values), tail

    def value(self, each: Type, start: int) -> tuple[Value, int]:
        """Read what has no fixed length and begins at `start`; gives it and where it ends."""
        if isinstance(each, tuple):
            return self.members(each, start)
        if isinstance(each, list):
            count = self.count(start)
            # Compared with what is there before anything is made: the sender controls this number.
            if count * WORD > len(self.body) - start - WORD:
                raise NotCanonical
            values, end = self.members(each * count, start + WORD)
            return list(values), end
        # KeyError for a name that is none: such a declaration reads nothing.
        return {"bytes": self.read_padded, "string": self.read_padded}[each](start)

    def static(self, name: str, word: bytes) -> Value:
        """Read one word; what is above the type's width is told as dirty, and dropped as most contracts do."""
        if (size := _SIZES.get(name)) is not None:
            self.dirty = self.dirty or any(word[size:])
            return word[:size]
        if (width := _SIGNED.get(name)) is not None:
            number = int.from_bytes(word[-width // 8 :], signed=True)
            self.dirty = self.dirty or number != int.from_bytes(word, signed=True)
            return number
        number, width = int.from_bytes(word), _WIDTHS[name]
        self.dirty = self.dirty or bool(number >> width)
        if name == "bool":
            return bool(number)
        number &= (1 << width) - 1
        return f"0x{number:040x}" if name == "address" else number

    def read_padded(self, start: int) -> tuple[bytes, int]:
        """Read a length and so many bytes, padded to whole words."""
        size, first = self.count(start), start + WORD
        end = first + (size + WORD - 1) // WORD * WORD
        if end > len(self.body):
            raise NotCanonical
        self.dirty = self.dirty or any(self.body[first + size : end])
        return self.body[first : first + size], end

    def count(self, start: int) -> int:
        """Read a length, which may be far more than what is there."""
        return int.from_bytes(self.word(start))

    def word(self, start: int) -> bytes:
        """Read 32 bytes."""
        word = self.body[start : start + WORD]
        if len(word) != WORD:
            raise NotCanonical
        return word
