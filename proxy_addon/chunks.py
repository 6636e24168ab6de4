"""Read a chunked body (RFC 9112 7.1) in time that grows with its bytes, a bounded part of it at one go.

Extensions are dropped, and trailers are the reader's to pass on: they could say what the head may not. A line ends in
CRLF and in nothing else.
"""

import re
from typing import Final

from custody.kit.errors import Invalid
from proxy_addon.fragmentation import Fragmentation

# A chunk's size with its extensions; all trailers together. Both in bytes.
MAX_CHUNK_LINE: Final = 256
MAX_TRAILERS: Final = 8 * 1024
# Chunks that are read at one go: some 0.3 ms.
MAX_CHUNKS_AT_ONCE: Final = 256
_CRLF: Final = b"\r\n"
_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[\t ]*|;[\t\x20-\x7e\x80-\xff]*)")
_TRAILER = re.compile(rb"[!-9;-~]+:[\t\x20-\x7e\x80-\xff]*")


class BadChunk(Invalid):
    """The body does not match its Content-Length or Transfer-Encoding."""


class Chunks:
    """One body. `ended` once the last of its `trailers` was read."""

    __slots__ = ("_edge", "_fragmentation", "_in_trailers", "_left", "_trailers", "ended", "trailers")

    def __init__(self) -> None:
        self._fragmentation = Fragmentation()
        # Payload bytes of the chunk being read that are still to come, and whether the CRLF behind them is.
        self._left = 0
        self._edge = False
        self._in_trailers = False
        self._trailers = 0
        self.trailers: list[bytes] = []
        self.ended = False

    def __repr__(self) -> str:
        return "Chunks()"

    def take(self, data: bytes) -> tuple[bytes, int, bool]:
        """The payload that a go finds in data, how many bytes of the data it used up, and whether to go on at once.

        Raises BadChunk, or TooFragmented.
        """
        payload: list[bytes] = []
        at = 0
        for _ in range(MAX_CHUNKS_AT_ONCE):
            used = self._trailer(data, at) if self._in_trailers else self._chunk(data, at, payload)
            if used is None or self.ended:
                return b"".join(payload), at + (used or 0), False
            at += used
        return b"".join(payload), at, at < len(data)

    def _chunk(self, data: bytes, at: int, payload: list[bytes]) -> int | None:
        """Read on in a chunk or begin one; None when nothing can be made of the data yet."""
        if self._left:
            piece = data[at : at + self._left]
            self._left -= len(piece)
            self._edge = not self._left
            payload.append(piece)
            return len(piece) or None
        if self._edge:
            found = data[at : at + 2]
            if found != _CRLF and found not in (b"", b"\r"):
                raise BadChunk
            self._edge = found != _CRLF
            return None if self._edge else 2
        line = _line(data, at, MAX_CHUNK_LINE)
        if line is None:
            return None
        size = _LINE.fullmatch(line)
        if size is None:
            raise BadChunk
        self._left = int(size[1], 16)
        self._in_trailers = not self._left
        self._fragmentation.count(self._left)
        return len(line) + 2

    def _trailer(self, data: bytes, at: int) -> int | None:
        line = _line(data, at, MAX_TRAILERS - self._trailers)
        if line is None:
            return None
        self._trailers += len(line) + 2
        self.ended = not line
        if line and not _TRAILER.fullmatch(line):
            raise BadChunk
        if line:
            self.trailers.append(line)
        return len(line) + 2


def _line(data: bytes, at: int, longest: int) -> bytes | None:
    """The line that begins here, without its end; None while that is not there."""
    end = data.find(_CRLF, at, at + longest)
    if end >= 0:
        return data[at:end]
    if len(data) - at >= longest:
        raise BadChunk
    return None


def chunk_of(data: bytes) -> bytes:
    """A chunk of a body, as it is written."""
    return b"%x\r\n%s\r\n" % (len(data), data)
