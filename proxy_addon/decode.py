"""Undo the codings of an answer's body as it comes, so that it can be masked and sent on plain.

Guarantees: one go makes about as many bytes as one read of a plain answer brings, the rest waits for its turn; what is
made is at most so many times what came; a body that ends within its coding never ends well. It decides nothing.
"""

import zlib
from collections.abc import Iterable
from typing import Any, Final, Protocol

import brotli
import zstandard

from custody.kit.errors import Invalid

# Codings of one body, each of which costs a decoder of its own, and the characters that name them.
MAX_CODINGS: Final = 3
MAX_NAMES: Final = 128
# Bytes that all decoders of a body may make for each that came, once they have made the first MiB.
MAX_RATIO: Final = 256
_UNMEASURED: Final = 2**20
# Bytes that one step makes, where a library lets one say; what is masked in one turn.
_STEP: Final = 16 * 1024
# Steps of decoders that stand behind each other before something must have come out at the end.
MAX_STEPS_AT_ONCE: Final = 4
# gzip members and zstd frames may follow each other, and beginning one costs as much as reading a kilobyte.
MAX_MEMBERS_AT_ONCE: Final = 16
# A block of zstd that is one byte repeated has four bytes and makes 128 KiB, and its library knows no bound.
_ZSTD_SLICE: Final = 32
# As RFC 9659 has it; brotli's own bound is twice that.
_ZSTD_WINDOW: Final = 8 * 2**20
# A little less than the longest, or the share of an agent would never have room for it.
_BROTLI_WINDOW: Final = 15 * 2**20
# Bytes of memory that decoders take before they have made any; zlib's is all it takes.
_BASE: Final = 256 * 1024
_INFLATE_BASE: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
# What servers write where they mean that there is no coding.
_NONE: Final = frozenset(("", "identity", "none", "binary", "utf-8", "utf8"))


class BadCoding(Invalid):
    """The body does not match its Content-Encoding."""


class Stage(Protocol):
    """One coding. `unread` while a step can make something of what was given, `complete` where the body may end."""

    @property
    def unread(self) -> bool:
        """Say whether another step makes sense."""

    @property
    def complete(self) -> bool:
        """Say whether a body may end here."""

    @property
    def base(self) -> int:
        """Bytes of memory that it takes by itself."""

    @property
    def window(self) -> int:
        """The most bytes of what it made that it keeps beside."""

    def give(self, data: bytes) -> None:
        """Add what came."""

    def step(self) -> bytes:
        """Make some of it plain."""


class _Inflate:
    """Gzip, in several members if need be, or deflate, with and without the frame that it should have."""

    base, window = _INFLATE_BASE, 0

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._input = b""
        self._member: Any = None
        # More of what was given may come out; no member came yet; the body is not coded at all; its end was seen.
        self._more, self._first, self._plain, self._over = False, True, False, False

    @property
    def unread(self) -> bool:
        """Say whether another step makes sense; a member begins with two bytes that must both be there."""
        begun = self._plain or self._member is not None
        return self._more or len(self._input) >= (1 if begun else len(_GZIP))

    @property
    def complete(self) -> bool:
        """Say whether a body may end here: also before it began, for an empty one is often called compressed."""
        return self._member is None and (self._over or not self._input)

    def give(self, data: bytes) -> None:
        """Add what came; behind the end it is dropped."""
        self._input = b"" if self._over else self._input + data

    def step(self) -> bytes:
        """Make some of it plain."""
        for _ in range(MAX_MEMBERS_AT_ONCE):
            if not self.unread:
                break
            if made := self._part():
                return made
        return b""

    def _part(self) -> bytes:
        if self._member is None and not self._plain:
            self._begin()
        if self._plain:
            made, self._input = self._input, b""
        elif self._member is None:
            made = b""
        else:
            made = self._member.decompress(self._input, _STEP)
            self._input, self._more = self._member.unconsumed_tail, len(made) == _STEP
            if self._member.eof:
                self._input, self._more, self._over = self._member.unused_data, False, not self._gzip
                self._member = None
                self.give(b"")
        return made

    def _begin(self) -> None:
        if not self._gzip:
            self._member = zlib.decompressobj(15 if _has_frame(self._input) else -15)
        elif self._input.startswith(_GZIP):
            self._member = zlib.decompressobj(31)
        else:
            # At the very beginning the body is not what it is called; behind a member it is padding.
            self._plain, self._over = self._first, not self._first
            self.give(b"")
        self._first = False


def _has_frame(data: bytes) -> bool:
    return data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0


class _Brotli:
    """Brotli; what comes behind its end is dropped."""

    base = _BASE

    def __init__(self) -> None:
        self.window = 0
        self._decoder = brotli.Decompressor()
        self._input = b""
        self._touched = False
        # Behind what the last step made the end of it may wait to be read.
        self._more = False

    @property
    def unread(self) -> bool:
        """Say whether another step makes sense."""
        if self._decoder.is_finished():
            return False
        return self._more or bool(self._input) or not self._decoder.can_accept_more_data()

    @property
    def complete(self) -> bool:
        """Say whether a body may end here."""
        return not self._touched or self._decoder.is_finished()

    def give(self, data: bytes) -> None:
        """Add what came; the first byte says how much of what it makes a stream refers to (RFC 7932, 9.1)."""
        if data and not self._touched:
            self.window = min(1 << _window_bits(data[0]), _BROTLI_WINDOW)
        self._touched = self._touched or bool(data)
        self._input += data

    def step(self) -> bytes:
        """Make some of it plain."""
        data = b""
        if self._decoder.can_accept_more_data():
            data, self._input = self._input, b""
        made: bytes = self._decoder.process(data, output_buffer_limit=_STEP)
        self._more = bool(made)
        return made


def _window_bits(first: int) -> int:
    if first & 1 == 0:
        return 16
    if high := first >> 1 & 7:
        return 17 + high
    return 8 + low if (low := first >> 4 & 7) > 1 else 17 if low == 0 else 24


class _Zstd:
    """Zstandard, in several frames if need be."""

    base, window = _BASE, _ZSTD_WINDOW

    def __init__(self) -> None:
        self._library = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._input = b""
        self._known = self._plain = False

    @property
    def unread(self) -> bool:
        """Say whether another step makes sense."""
        return bool(self._input) and (self._known or len(self._input) >= len(_ZSTD))

    @property
    def complete(self) -> bool:
        """Say whether a body may end here."""
        return self._frame is None and not self._input

    def give(self, data: bytes) -> None:
        """Add what came."""
        self._input += data

    def step(self) -> bytes:
        """Make some of it plain."""
        if not self._known:
            self._known, self._plain = True, not _is_zstd(self._input)
        if self._plain:
            made, self._input = self._input, b""
            return made
        pieces, size, at, frames = [], 0, 0, 0
        while at < len(self._input) and size < _STEP and frames < MAX_MEMBERS_AT_ONCE:
            if self._frame is None:
                self._frame = self._library.decompressobj()
                frames += 1
            piece = self._input[at : at + _ZSTD_SLICE]
            pieces.append(self._frame.decompress(piece))
            size += len(pieces[-1])
            at += len(piece)
            if self._frame.eof:
                at -= len(self._frame.unused_data)
                self._frame = None
        self._input = self._input[at:]
        return b"".join(pieces)


def _is_zstd(data: bytes) -> bool:
    return data.startswith(_ZSTD) or (data[0] & 0xF0 == 0x50 and data[1:4] == b"\x2a\x4d\x18")


def _stage_of(coding: str) -> Stage:
    if coding in ("gzip", "deflate"):
        return _Inflate(gzip=coding == "gzip")
    return _Brotli() if coding == "br" else _Zstd()


_KNOWN: Final = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}


def codings_in(names: Iterable[str]) -> list[str] | None:
    """The codings that headers name, in the order in which they were applied; None where one cannot be undone."""
    text = ",".join(names)
    if len(text) > MAX_NAMES:
        return None
    found = [name for part in text.split(",") if (name := part.strip().lower()) not in _NONE]
    codings = [_KNOWN.get(name, "") for name in found]
    return codings if all(codings) and len(codings) <= MAX_CODINGS else None


class Decoder:
    """The body of one answer."""

    __slots__ = ("_at", "_came", "_made", "_ready", "_stages", "counted")

    def __init__(self, codings: list[str]) -> None:
        """`codings` in the order in which they were applied, at least one."""
        self._stages = [_stage_of(coding) for coding in reversed(codings)]
        self._came = self._made = 0
        # What the last step made, and how much of that was handed on.
        self._ready, self._at = b"", 0
        # Bytes of its memory that were counted to the agent.
        self.counted = 0

    def __repr__(self) -> str:
        return "Decoder()"

    @property
    def unread(self) -> bool:
        """True while more can be made of what came."""
        return self._at < len(self._ready) or any(stage.unread for stage in self._stages)

    @property
    def memory(self) -> int:
        """Bytes that it holds at most by now."""
        return sum(stage.base + min(stage.window, self._made) for stage in self._stages)

    def feed(self, data: bytes) -> bytes:
        """Make what one go may of this and of what came before. Raises BadCoding."""
        self._came += len(data)
        self._stages[0].give(data)
        if self._at >= len(self._ready):
            try:
                self._ready, self._at = self._steps(), 0
            except (zlib.error, brotli.error, zstandard.ZstdError):
                raise BadCoding from None
        start, self._at = self._at, min(self._at + _STEP, len(self._ready))
        return self._ready[start : self._at]

    def end(self) -> None:
        """Say that nothing more comes. Raises BadCoding where the body should go on."""
        if not all(stage.complete for stage in self._stages):
            raise BadCoding

    def _steps(self) -> bytes:
        for _ in range(MAX_STEPS_AT_ONCE):
            at = max((number for number, stage in enumerate(self._stages) if stage.unread), default=None)
            if at is None:
                break
            made = self._stages[at].step()
            self._made += len(made)
            if self._made > _UNMEASURED and self._made > MAX_RATIO * self._came:
                raise BadCoding
            if at + 1 == len(self._stages):
                if made:
                    return made
            else:
                self._stages[at + 1].give(made)
        return b""


# True only of the bytes that were there before they were decoded.
_OF_CODED: Final = frozenset(
    (b"content-encoding", b"content-length", b"content-md5", b"digest", b"content-digest", b"repr-digest")
)


def plain_head(fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """An answer's headers once its content is no longer coded; the same content, so its ETag holds weakly."""
    kept = [(name, value) for name, value in fields if name.lower() not in _OF_CODED]
    return [(name, b"W/" + value if name.lower() == b"etag" and value[:1] == b'"' else value) for name, value in kept]
