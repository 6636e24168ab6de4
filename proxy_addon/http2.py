"""HTTP/2 as far as the proxy judges it: frames within bounds, and streams as the HTTP/1.1 that is judged already.

Guarantees: what one go reads is bounded, frames that say nothing end the connection, and no field of a stream can
become a second line of what is made of it.
"""

import re
import time
from typing import Final

from custody.kit.errors import Invalid
from proxy_addon.chunks import Chunks
from proxy_addon.fragmentation import Fragmentation, TooFragmented

Headers = list[tuple[bytes, bytes]]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# The largest frame that is taken; nobody is asked to send larger ones.
MAX_FRAME: Final = 16_384
# A head's bytes as they are coded, and its fields plain; the frames that it is spread over.
MAX_BLOCK: Final = 64 * 1024
MAX_BLOCK_FRAMES: Final = 16
# Frames that are read at one go; a head costs as much as eight others.
MAX_FRAMES_AT_ONCE: Final = 32
_COST_OF_HEAD: Final = 8
# Streams that a side gives up in a minute, each of them work for somebody; and frames that say nothing.
MAX_RESETS, MAX_HOLLOW = 500, 10_000
_MINUTE: Final = 60.0
# Frames of the other side that each frame of ours may bring about: two windows, and a ping that measures the way.
_ANSWERS: Final = 3
_HEAD_BYTES: Final = 9
_DATA, _HEADERS, _RESET, _PUSH, _CONTINUATION = 0, 1, 3, 5, 9
_SETTINGS, _GOAWAY, _HTTP_1_1_REQUIRED = 4, 7, 13
_END_HEADERS: Final = 4
_SAYING: Final = frozenset((_DATA, _HEADERS, _CONTINUATION))


class BadFrames(Invalid):
    """Something that is no HTTP/2, or so much of it that nobody means it."""


class Frames:
    """Splits what comes on one connection into whole frames, a bounded part of them at one go."""

    __slots__ = (
        "_block",
        "_block_frames",
        "_buffer",
        "_credit",
        "_fragmentation",
        "_hollow",
        "_minute",
        "_preface",
        "_resets",
    )

    def __init__(self, *, preface: bool) -> None:
        """`preface` where the other side begins, as clients do."""
        self._buffer = bytearray()
        self._preface = PREFACE if preface else b""
        self._fragmentation = Fragmentation()
        # Of the head that is coming: bytes and frames so far, none where there is none.
        self._block = self._block_frames = 0
        self._credit = 0
        self._resets = self._hollow = 0
        self._minute = time.monotonic()

    def __repr__(self) -> str:
        return "Frames()"

    def give(self, data: bytes) -> None:
        """Add what came."""
        self._buffer += data

    def note_answers(self, frames: int) -> None:
        """Note that we sent so many frames with something in them: they are answered by frames that say nothing."""
        self._credit = min(self._credit + _ANSWERS * frames, 1000)

    def take(self) -> tuple[bytes, bool]:
        """The next whole frames, and whether more of them are there. Raises BadFrames."""
        at = cost = 0
        if self._preface:
            if self._buffer[: len(self._preface)] != self._preface[: len(self._buffer)]:
                raise BadFrames
            if len(self._buffer) < len(self._preface):
                return b"", False
            at, self._preface = len(self._preface), b""
        while cost < MAX_FRAMES_AT_ONCE and (size := self._size_at(at)) is not None:
            kind, flags = self._buffer[at + 3], self._buffer[at + 4]
            self._count(kind, flags, size - _HEAD_BYTES)
            cost += _COST_OF_HEAD if kind == _HEADERS else 1
            at += size
        taken = bytes(self._buffer[:at])
        del self._buffer[:at]
        return taken, self._size_at(0) is not None

    def _size_at(self, at: int) -> int | None:
        """The size of the frame that begins here, if all of it is here."""
        if len(self._buffer) < at + _HEAD_BYTES:
            return None
        length = int.from_bytes(self._buffer[at : at + 3])
        if length > MAX_FRAME:
            raise BadFrames
        return length + _HEAD_BYTES if len(self._buffer) >= at + _HEAD_BYTES + length else None

    def _count(self, kind: int, flags: int, length: int) -> None:
        if kind == _PUSH:
            raise BadFrames
        if kind in (_HEADERS, _CONTINUATION):
            self._block += length
            self._block_frames += 1
            if self._block > MAX_BLOCK or self._block_frames > MAX_BLOCK_FRAMES:
                raise BadFrames
            if flags & _END_HEADERS:
                self._block = self._block_frames = 0
        elif kind == _RESET:
            self._resets += 1
        if length and kind in _SAYING:
            try:
                self._fragmentation.count(length)
            except TooFragmented:
                raise BadFrames from None
        elif self._credit:
            self._credit -= 1
        else:
            self._hollow += 1
        if self._resets > MAX_RESETS or self._hollow > MAX_HOLLOW:
            self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if now - self._minute < _MINUTE:
            raise BadFrames
        self._resets = self._hollow = 0
        self._minute = now


def is_settings(head: bytes) -> bool:
    """Say whether this is the head of the first frame of a connection, which nothing in HTTP/1.1 begins like."""
    return len(head) == _HEAD_BYTES and head[0] == 0 and head[3:] == bytes((_SETTINGS, 0, 0, 0, 0, 0))


def end_of_connection(last: int, code: int, said: bytes = b"") -> bytes:
    """The frame that ends a connection: the last stream that was looked at, why, and a word for people."""
    return _frame(_GOAWAY, last.to_bytes(4) + code.to_bytes(4) + said)


def no_http2_here(body: bytes) -> bytes:
    """Settings, and the end of the connection with an envelope in it: the one error that clients of HTTP/2 print."""
    return _frame(_SETTINGS, b"") + end_of_connection(0, _HTTP_1_1_REQUIRED, body)


def _frame(kind: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, 0, 0, 0, 0, 0)) + payload


# ---- a stream of an agent, as a request of HTTP/1.1

_METHOD = re.compile(rb"[A-Z]{1,20}")
_PATH = re.compile(rb"(?:/[\x21-\x7e\x80-\xff]*|\*)")
_AUTHORITY = re.compile(rb"[\x21-\x7e]{1,512}")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# Between two neighbours, and for HTTP/1.1 only (RFC 9113, 8.2.2); `host` is said by the pseudo-header.
_OF_CONNECTION: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"host", b"http2-settings")
)


class BadHead(Invalid):
    """A head that no HTTP/1.1 can be made of."""


def request_head(fields: Headers, *, ended: bool) -> tuple[bytes, bool, bool]:
    """The head in HTTP/1.1, whether its body comes in chunks, and whether it is a HEAD. Raises BadHead."""
    said = {name: value for name, value in fields if name[:1] == b":"}
    method, path = said.get(b":method", b""), said.get(b":path", b"")
    if said.keys() - {b":method", b":path", b":scheme", b":authority"} or not _METHOD.fullmatch(method):
        raise BadHead
    plain = [(name, value) for name, value in fields if name[:1] != b":"]
    authority = said.get(b":authority") or next((value for name, value in plain if name == b"host"), b"")
    if method == b"CONNECT" or not _PATH.fullmatch(path) or not _AUTHORITY.fullmatch(authority):
        raise BadHead
    lines = [b"%s %s HTTP/1.1" % (method, path), b"Host: " + authority]
    crumbs, sized = [], False
    for name, value in plain:
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            raise BadHead
        if name == b"cookie":
            # One header again, as HTTP/1.1 has it (RFC 9113, 8.2.3).
            crumbs.append(value)
        elif name not in _OF_CONNECTION:
            sized = sized or name == b"content-length"
            lines.append(name + b": " + value)
    if crumbs:
        lines.append(b"cookie: " + b"; ".join(crumbs))
    chunked = not ended and not sized
    if chunked:
        lines.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n", chunked, method == b"HEAD"


# ---- our answer in HTTP/1.1, as the answer on a stream

_BODILESS: Final = (204, 304)


class Answer:
    """The answer to one request, as our own side of HTTP/1.1 writes it: plain, and well formed."""

    __slots__ = ("_chunks", "_head_only", "_left", "_raw", "ended", "fields", "interim", "last", "plain", "status")

    def __init__(self, *, head_only: bool) -> None:
        self._head_only = head_only
        self._raw = bytearray()
        self._chunks: Chunks | None = None
        # Bytes of the body that are to come; None up to the end of the connection.
        self._left: int | None = None
        self.status = 0
        self.fields: Headers = []
        # Interim answers that were not sent on yet.
        self.interim: list[int] = []
        # What came of the body; whether that is all; whether the connection ends behind it.
        self.plain = bytearray()
        self.ended = self.last = False

    def __repr__(self) -> str:
        return f"Answer({self.status})"

    @property
    def trailers(self) -> Headers:
        """The fields that followed the body."""
        lines = self._chunks.trailers if self._chunks is not None else []
        return [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]

    def feed(self, data: bytes) -> None:
        """Take what was written."""
        self._raw += data
        while not self.status and (end := self._raw.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._raw[:end]).split(b"\r\n")
            del self._raw[: end + 4]
            self._begin(head)
        if self.status and not self.ended:
            self._read()

    def end(self) -> bool:
        """Say that nothing more comes; whether the answer is whole."""
        self.ended = self.ended or (bool(self.status) and self._chunks is None and self._left is None)
        return self.ended

    def _begin(self, head: list[bytes]) -> None:
        status = int(head[0][9:12])
        if status < 200:
            self.interim.append(status)
            return
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in head[1:])]
        framing = dict(pairs)
        self.status = status
        self.fields = [(name, value) for name, value in pairs if name not in _OF_CONNECTION]
        self.last = b"close" in framing.get(b"connection", b"").lower()
        if self._head_only or status in _BODILESS:
            self._left = 0
        elif b"transfer-encoding" in framing:
            self._chunks = Chunks()
        elif b"content-length" in framing:
            self._left = int(framing[b"content-length"])
        self.ended = self._left == 0

    def _read(self) -> None:
        if self._chunks is None:
            self.plain += self._raw
            if self._left is not None:
                self._left -= len(self._raw)
                self.ended = self._left <= 0
            self._raw.clear()
            return
        unread = True
        while unread and not self._chunks.ended:
            payload, used, unread = self._chunks.take(bytes(self._raw))
            self.plain += payload
            del self._raw[:used]
        self.ended = self._chunks.ended


# ---- a request to an upstream, and its answer

MAX_FIELDS: Final = 256


def upstream_head(method: bytes, path: bytes, fields: Headers) -> Headers:
    """The head for an upstream. Raises BadHead where it wants something that only HTTP/1.1 has."""
    plain = [(name.lower(), value.strip(b" \t")) for name, value in fields]
    named = [value for name, value in plain if name == b"host"]
    if len(named) != 1 or any(name == b"upgrade" for name, _ in plain):
        raise BadHead
    head = [(b":method", method), (b":scheme", b"https"), (b":authority", named[0]), (b":path", path)]
    # Trailers can be told from the head here, and servers of gRPC insist on being told that they are taken.
    return [*head, *((name, value) for name, value in plain if name not in _OF_CONNECTION), (b"te", b"trailers")]


def answer_head(fields: Headers, *, method: bytes, ended: bool) -> tuple[int, Headers]:
    """Status and headers as HTTP/1.1 has them, framing included. Raises BadHead."""
    said = {name: value for name, value in fields if name[:1] == b":"}
    status = said.get(b":status", b"")
    plain = [(name, value) for name, value in fields if name[:1] != b":"]
    if said.keys() != {b":status"} or not _STATUS.fullmatch(status) or len(plain) > MAX_FIELDS:
        raise BadHead
    if any(not _NAME.fullmatch(name) or _CONTROL.search(value) for name, value in plain):
        raise BadHead
    kept = [(name, value) for name, value in plain if name not in _OF_CONNECTION]
    bodiless = method == b"HEAD" or int(status) in _BODILESS
    if not bodiless and not any(name == b"content-length" for name, _ in kept):
        kept.append((b"Content-Length", b"0") if ended else (b"Transfer-Encoding", b"chunked"))
    return int(status), kept


def body_size(status: int, fields: Headers, *, method: bytes) -> int | None:
    """Say how many bytes the body of an answer must have, None where its head does not say. Raises BadHead."""
    if method == b"HEAD" or status in _BODILESS:
        return 0
    said = [value for name, value in fields if name.lower() == b"content-length"]
    if len(said) > 1 or not all(_LENGTH.fullmatch(value) for value in said):
        raise BadHead
    return int(said[0]) if said else None


_LENGTH = re.compile(rb"[0-9]{1,19}")
_STATUS = re.compile(rb"[2-9][0-9]{2}")
# What says how a message is to be read, or for whom it is, is said before it or not at all (RFC 9110, 6.5.1).
_OF_HEAD: Final = frozenset(
    (
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"content-range",
        b"trailer",
        b"te",
        b"set-cookie",
        b"location",
        b"alt-svc",
        b"www-authenticate",
        b"authorization",
        b"age",
        b"cache-control",
        b"expires",
        b"date",
        b"vary",
    )
)


def trailers_for_agent(fields: Headers) -> Headers:
    """The trailers of an answer that go on to an agent that speaks HTTP/2; gRPC says there how a call ended."""
    return [
        (name, value)
        for name, value in ((name.lower(), value) for name, value in fields[:MAX_FIELDS])
        if _NAME.fullmatch(name)
        and not _CONTROL.search(value)
        and name not in _OF_HEAD
        and name not in _OF_CONNECTION
        and not name.startswith(b"x-service-")
    ]
