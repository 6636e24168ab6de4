"""Parts of an answer, for routes that forward them.

A part of a text shows what the whole does not: a piece of the credential is no form of it. So the upstream is asked for
more on both sides, as much as a form may be long; that is masked, and then cut to what the agent asked for. Guarantees:
a part is what the same bytes of the whole, masked answer are, wherever its ends lie and however many overlap.
"""

import re
from typing import Final

import msgspec

from custody.kit.errors import Invalid
from proxy_addon.mask import Masker, Needles

Headers = list[tuple[bytes, bytes]]

# Those by which an upstream is asked for a part; the second is Azure's, whose client sends it with every download.
_KNOWN: Final = (b"range", b"x-ms-range")
_PARTS: Final = (*_KNOWN, b"request-range")
# What is sent, and what is copied at the upstream.
_OTHER_PARTS: Final = (b"content-range", b"if-range", b"source-range")
_RANGE = re.compile(rb"bytes=(?:(?P<first>[0-9]{1,15})-(?P<last>[0-9]{1,15})?|-(?P<suffix>[0-9]{1,15}))", re.IGNORECASE)
_WHOLE: Final = b"bytes=0-"
_CONTENT_RANGE = re.compile(rb"bytes (?P<first>[0-9]{1,18})-(?P<last>[0-9]{1,18})/(?P<total>[0-9]{1,18}|\*)")
# Of the part that the upstream sent, not of the one that goes on.
_CHECKSUMS: Final = (b"content-md5", b"digest", b"content-digest", b"x-ms-content-crc64")
_ACCEPT: Final = b"accept-ranges"


class RangeNotForwarded(Invalid):
    """A part was asked for. Set `ranges` on the credential route and ask for one range of bytes by GET, or for all."""


class BadPart(Exception):
    """The upstream's part is not the one that it was asked for."""


class BeyondEnd(Exception):
    """The part begins behind the end."""

    def __init__(self, total: int) -> None:
        self.total = total
        super().__init__(total)


class Wanted(msgspec.Struct, frozen=True):
    """The part that an agent asked for: from `first` to `last` or to the end, or without `first` the `last` bytes."""

    header: bytes
    first: int | None
    last: int | None
    # So many bytes more are asked for on each side.
    context: int

    def as_sent(self) -> bytes:
        """The value of the header for the upstream."""
        if self.first is None:
            return b"bytes=-%d" % ((self.last or 0) + self.context)
        end = b"" if self.last is None else b"%d" % (self.last + self.context)
        return b"bytes=%d-%s" % (max(0, self.first - self.context), end)


def asks_for_part(name: bytes, value: bytes) -> bool:
    """Say whether a header asks for a part of the answer; its name is in lower case, with hyphens."""
    if name in _PARTS:
        return True
    of_bytes = value.lstrip().lower().startswith(b"bytes")
    return of_bytes and name.endswith(b"-range") and not name.endswith(_OTHER_PARTS)


def read(method: str, headers: Headers, needles: Needles, *, forwarded: bool) -> Wanted | None:
    """The part that a request asks for, or None for the whole; RangeNotForwarded if it would get something else."""
    found = [(name.lower().replace(b"_", b"-"), value.strip()) for name, value in headers]
    found = [(name, value) for name, value in found if asks_for_part(name, value)]
    # RFC 9110, 14.2: with a HEAD it means nothing.
    if not found or method == "HEAD":
        return None
    name, value = found[0]
    parts = _RANGE.fullmatch(value)
    if len(found) == 1 and forwarded and method == "GET" and name in _KNOWN and parts is not None:
        first, last = parts["first"], parts["suffix"] or parts["last"]
        wanted = Wanted(name, _number(first), _number(last), 2 * needles.longest)
        if wanted.first is None or wanted.last is None or wanted.first <= wanted.last:
            return wanted
    if all(value.lower() == _WHOLE for _, value in found):
        return None
    raise RangeNotForwarded


class Cut:
    """Masks a text that comes in chunks, and lets only a part of it through."""

    __slots__ = ("_left", "_masker", "_skip")

    def __init__(self, masker: Masker, skip: int, length: int) -> None:
        self._masker = masker
        self._skip = skip
        self._left = length

    def __repr__(self) -> str:
        return "Cut()"

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give back what is decided of the part."""
        return self._cut(self._masker.feed(chunk))

    def end(self) -> bytes:
        """Give back what was held of the part."""
        return self._cut(self._masker.end())

    def _cut(self, data: bytes) -> bytes:
        shown = data[self._skip : self._skip + self._left]
        self._skip = max(0, self._skip - len(data))
        self._left -= len(shown)
        return shown


def cut_to(wanted: Wanted, headers: Headers, needles: Needles) -> tuple[Headers, Cut]:
    """The head for the agent of an upstream's part, and what cuts its body; BadPart, or BeyondEnd."""
    said = [value for name, value in headers if name.lower() == b"content-range"]
    parts = _CONTENT_RANGE.fullmatch(said[0]) if len(said) == 1 else None
    if parts is None:
        raise BadPart
    start, end = int(parts["first"]), int(parts["last"])
    total = None if parts["total"] == b"*" else int(parts["total"])
    first, last = _within(wanted, start, end, total)
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    if lengths not in ([], [b"%d" % (end - start + 1)]):
        raise BadPart
    length = last - first + 1
    new = {b"content-length": b"%d" % length, b"content-range": b"bytes %d-%d/%s" % (first, last, parts["total"])}
    kept = [(name, new.get(name.lower(), value)) for name, value in headers if not _is_checksum(name.lower())]
    return kept, Cut(Masker(needles), first - start, length)


def _within(wanted: Wanted, start: int, end: int, total: int | None) -> tuple[int, int]:
    """The first and the last byte of what the agent gets, all of it with enough on both sides."""
    whole_end = total is not None and end == total - 1
    if wanted.first is None:
        size = wanted.last or 0
        if total is None or not whole_end or start != max(0, total - size - wanted.context):
            raise BadPart
        first, last = max(0, total - size), end
    else:
        if start != max(0, wanted.first - wanted.context):
            raise BadPart
        most = end if whole_end else end - wanted.context
        first, last = wanted.first, most if wanted.last is None else min(wanted.last, most)
    if total is not None and first >= total:
        raise BeyondEnd(total)
    if not start <= first <= last <= end or (total is not None and end >= total):
        raise BadPart
    return first, last


def not_offered(headers: Headers) -> Headers:
    """The head of an answer of which no parts are to be had."""
    return [(name, b"none" if name.lower() == _ACCEPT else value) for name, value in headers]


def _is_checksum(name: bytes) -> bool:
    return name in _CHECKSUMS or name.startswith(b"x-amz-checksum-")


def _number(text: bytes | None) -> int | None:
    return None if text is None else int(text)
