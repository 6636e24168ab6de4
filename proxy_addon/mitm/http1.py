"""HTTP/1.1 on both sides, with bounds: heads of 64 KiB, no pipelining without end, trailers dropped, 1xx skipped.

What a stranger sends is parsed in time that grows with its bytes, and no event works for longer than about a
millisecond: of a body in small chunks the rest waits for a `Wakeup`, which comes when it is this agent's turn again.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.net.http import http1, status_codes
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpClient, RegisterHttpConnection
from mitmproxy.proxy.layers.http._base import HttpConnection, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestHeaders,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection, Http1Server, make_body_reader

from proxy_addon import refuse
from proxy_addon.chunks import BadChunk, Chunks
from proxy_addon.fragmentation import TooFragmented
from proxy_addon.http2 import PREFACE, is_settings, no_http2_here
from proxy_addon.refuse import Refusal

MAX_HEAD = 64 * 1024
MAX_LINES = 256
# Interim answers at once before the final one, and empty lines before a head: the standard knows reasons for a few.
MAX_INTERIM = 16
# A long job tells every few seconds that it goes on.
MAX_INTERIM_PER_SECOND = 2
MAX_EMPTY_LINES = 16
# Bytes of what says where a message ends: the library's own reader of these headers takes time by their square.
MAX_FRAMING_VALUE = 64
# Why an upstream's connection broke off that began with a frame of HTTP/2.
SPEAKS_HTTP2 = "the upstream speaks HTTP/2"
_VERSIONS = (b"HTTP/1.0", b"HTTP/1.1")
# An interim answer never gets this far; 101 is a final one.
_INTERIM = re.compile(rb"1(?!01)[0-9]{2}")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (?:101|[2-9][0-9]{2})(?: |$)")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# Answers that no body follows, whatever their heads say.
_BODILESS = re.compile(rb"HTTP/1\.[01] (?:204|304)")
_SCHEMES = (b"", b"http", b"https")
# What some readers take for the end of a line or of a word, and others for a part of it.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
Commands = layer.CommandGenerator[None]


def answer_of(refusal: Refusal, request_id: str, *, close: bool) -> tuple[bytes, bytes]:
    """Head and body of a refusal."""
    body = refuse.body_of(refusal, request_id)
    lines = [
        b"HTTP/1.1 %d %s" % (refusal.status, status_codes.RESPONSES.get(refusal.status, "Refused").encode()),
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        b"X-Request-Id: " + request_id.encode(),
        refuse.ERROR + b": " + refusal.code.encode(),
        *(name + b": " + value for name, value in refusal.headers),
        *([b"Connection: close"] if close else []),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n", body


class WakeForAnswer(commands.RequestWakeup):
    """The wish to go on with an answer: it waits for its agent alone; its upstream may take no more of a request."""

    def __init__(self) -> None:
        super().__init__(0)


class AgentSide(Http1Server):
    """The agent's connection. What mitmproxy would answer in HTML is answered in our envelope."""

    def __init__(self, context: Context, refused: Callable[[Refusal], str]) -> None:
        """`refused` counts a refusal and gives the request id for its answer."""
        super().__init__(context)
        self._refused = refused
        self._trailers = b""

    def send(self, event: HttpEvent) -> Commands:
        """Write some of an answer; trailers only behind a body in chunks."""
        if isinstance(event, ResponseTrailers):
            self._trailers = b"".join(name + b": " + value + b"\r\n" for name, value in event.trailers.fields)
            return
        if isinstance(event, ResponseEndOfMessage) and self._trailers:
            chunked = self.response is not None and "chunked" in self.response.headers.get("transfer-encoding", "")
            trailers, self._trailers = self._trailers, b""
            if chunked:
                yield commands.SendData(self.conn, b"0\r\n" + trailers + b"\r\n")
                yield from self.mark_done(response=True)
                return
        yield from super().send(event)

    def _handle_event(self, event: events.Event) -> Commands:
        yield from super()._handle_event(_wake_event(self, event))

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        """Read a head; one that is too long, malformed or no HTTP at all ends the connection with an answer."""
        if not isinstance(event, events.DataReceived):
            yield commands.CloseConnection(self.conn)
            return
        try:
            head = _head_in(self)
        except ValueError:
            yield from self.refuse_head(refuse.MALFORMED)
            return
        if head is None:
            # A control character where the method should be: a TLS handshake, most likely.
            if self.buf and self.buf.is_next_line_obviously_invalid_request_line():
                yield from self.refuse_head(refuse.MALFORMED)
            elif len(self.buf) > MAX_HEAD:
                yield from self.refuse_head(refuse.HEAD_TOO_LARGE)
            return
        if _size(head) > MAX_HEAD:
            yield from self.refuse_head(refuse.HEAD_TOO_LARGE)
            return
        if PREFACE.startswith(head[0] + b"\r\n"):
            yield from self.refuse_head(refuse.HTTP2_AT_PORT)
            return
        try:
            _insist_on_whole_lines(head)
            self.request = http1.read_request_head(head)
            if self.request.data.http_version not in _VERSIONS or self.request.data.scheme not in _SCHEMES:
                raise ValueError("another protocol")
            expected = _body_size(self.request)
        except ValueError:
            self.request = None
            yield from self.refuse_head(refuse.MALFORMED)
            return
        yield ReceiveHttp(RequestHeaders(self.stream_id, self.request, expected == 0))
        self.body_reader = _reader(expected)
        self.state = self.read_body
        yield from self.state(event)

    def refuse_head(self, refusal: Refusal) -> Commands:
        """Answer what never became a request, and close."""
        head, body = answer_of(refusal, self._refused(refusal), close=True)
        yield commands.SendData(self.conn, no_http2_here(body) if refusal is refuse.HTTP2_AT_PORT else head + body)
        yield commands.CloseConnection(self.conn)
        self.state = self.done

    def read_body(self, event: events.Event) -> Commands:
        """Read the body; broken framing is the request's error, so that its stream can still answer."""
        if isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self.conn)
            yield ReceiveHttp(RequestProtocolError(self.stream_id, "gone", ErrorCode.CLIENT_DISCONNECTED))
            self.state = self.done
            return
        try:
            yield from _read_body(self, event)
        except (h11.ProtocolError, BadChunk, TooFragmented) as problem:
            self.state = self.done
            code = refuse.TOO_FRAGMENTED.code if isinstance(problem, TooFragmented) else refuse.MALFORMED.code
            yield ReceiveHttp(RequestProtocolError(self.stream_id, code, ErrorCode.GENERIC_CLIENT_ERROR))

    def wait(self, event: events.Event) -> Commands:
        """Until the answer is done: what an agent sends ahead is kept, but not without end."""
        if isinstance(event, events.DataReceived) and len(self.buf) > MAX_HEAD:
            yield commands.CloseConnection(self.conn)
            yield ReceiveHttp(
                RequestProtocolError(self.stream_id, "too much was sent ahead", ErrorCode.CLIENT_DISCONNECTED)
            )
            self.state = self.done
            return
        yield from super().wait(event)


class UpstreamSide(Http1Client):
    """The upstream's connection."""

    # Interim answers since the last final one, and when the first of them came.
    _interim = 0
    _interim_since = 0.0

    def _handle_event(self, event: events.Event) -> Commands:
        yield from super()._handle_event(_wake_event(self, event))

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        """Read a head; interim answers (100, 103) are dropped, endless heads refused."""
        if isinstance(event, events.ConnectionClosed):
            if self.stream_id:
                yield from self._break_off("the upstream closed the connection")
            elif self.conn.state:
                yield commands.CloseConnection(self.conn)
            return
        if self.request is None:
            # Data that nobody asked for: this connection is not to be used again.
            yield commands.CloseConnection(self.conn)
            return
        if self.stream_id and is_settings(bytes(self.buf)[:9]):
            yield from self._break_off(SPEAKS_HTTP2)
            return
        try:
            head = self._final_head()
        except ValueError:
            yield from self._break_off("the answer begins without an end")
            return
        if head is None:
            if len(self.buf) > MAX_HEAD:
                yield from self._break_off("the answer's head has no end")
            return
        yield from self._take(head, event)

    def _final_head(self) -> list[bytes] | None:
        """The next head that is not an interim answer's; raises ValueError when there are too many of those."""
        while (head := _head_in(self)) is not None and _is_interim(head[0]):
            now = time.monotonic()
            self._interim_since = self._interim_since if self._interim else now
            self._interim += 1
            if self._interim > MAX_INTERIM + MAX_INTERIM_PER_SECOND * (now - self._interim_since):
                raise ValueError("too many interim answers")
        return head

    def _take(self, head: list[bytes], event: events.ConnectionEvent) -> Commands:
        assert self.request is not None  # noqa: S101 - the caller looked
        assert self.stream_id is not None  # noqa: S101 - set with the request
        try:
            if _size(head) > MAX_HEAD:
                raise ValueError("a head that is too long")
            _insist_on_whole_lines(head)
            if not _STATUS_LINE.match(head[0]):
                raise ValueError("no status of HTTP")
            self.response = http1.read_response_head(clean_head(head))
            expected = _body_size(self.request, self.response)
        except ValueError:
            yield from self._break_off("the answer's head is malformed")
            return
        self._interim = 0
        yield ReceiveHttp(ResponseHeaders(self.stream_id, self.response, expected == 0))
        self.body_reader = _reader(expected)
        self.state = self.read_body
        yield from self.state(event)

    def _break_off(self, reason: str) -> Commands:
        assert self.stream_id is not None  # noqa: S101 - there is a request
        # Its end is said once: what comes of this connection is nothing to the one that takes its place.
        self.state = self.done
        if self.conn.state:
            yield commands.CloseConnection(self.conn)
        yield ReceiveHttp(ResponseProtocolError(self.stream_id, reason, ErrorCode.GENERIC_SERVER_ERROR))

    def read_body(self, event: events.Event) -> Commands:
        """Read the body; one that ends too early or is framed badly is an error, never an end."""
        try:
            yield from _read_body(self, event)
        except (h11.ProtocolError, BadChunk, TooFragmented):
            self.state = self.done
            yield from self._break_off("the answer's framing is broken")


def clean_head(head: list[bytes]) -> list[bytes]:
    """An answer's head as RFC 9112 has a proxy pass it on, with one way to read where the body ends, or ValueError.

    Lines that are no header are dropped (5.1: blanks behind a name, too), and of two framings the one that does not
    count. An upstream whose framing was mended is not used again (6.3).
    """
    lines, lengths, codings, doubtful = [head[0]], [], [], False
    for line in head[1:]:
        name, colon, value = line.partition(b":")
        written, name, value = name, name.rstrip(b" \t"), value.strip(b" \t")
        doubtful = doubtful or name != written
        if not colon or not _NAME.fullmatch(name):
            doubtful = True
            continue
        if (known := name.lower()) == b"content-length":
            if len(value) > MAX_FRAMING_VALUE:
                raise ValueError("a length that is none")
            lengths += [part.strip(b" \t") for part in value.split(b",")]
        elif known == b"transfer-encoding":
            codings.append(value)
        else:
            lines.append(name + b": " + value)
    if len(set(lengths)) > 1 and not codings:
        raise ValueError("two lengths")
    if _BODILESS.match(head[0]):
        codings = []
    if codings:
        lines += [b"Transfer-Encoding: " + value for value in codings]
    elif lengths:
        lines.append(b"Content-Length: " + lengths[0])
    if doubtful or len(lengths) > 1 or (lengths and codings):
        lines.append(b"Connection: close")
    return lines


def _head_in(side: Http1Connection) -> list[bytes] | None:
    """The lines of the next complete head; a few empty lines before it are skipped, as the standard asks."""
    for _ in range(MAX_EMPTY_LINES + 1):
        lines = side.buf.maybe_extract_lines()
        if lines is None:
            return None
        if lines:
            return [bytes(line) for line in lines[: MAX_LINES + 1]]
    raise ValueError("empty lines without end")


def _size(head: list[bytes]) -> int:
    """In bytes; a head of too many lines counts as one that is too long, whatever it says."""
    return sum(map(len, head)) + 2 * len(head) if len(head) <= MAX_LINES else MAX_HEAD + 1


def _insist_on_whole_lines(head: list[bytes]) -> None:
    """Refuse folded lines, and control characters anywhere."""
    if any(line[:1] in (b" ", b"\t") for line in head) or _CONTROL.search(b"".join(head)):
        raise ValueError("a folded or split line")


def _is_interim(status_line: bytes) -> bool:
    status = status_line.split(None, 2)[1:2]
    return bool(status) and _INTERIM.fullmatch(status[0]) is not None


def _body_size(request: http.Request, response: http.Response | None = None) -> int | None:
    """The body's size, None for chunks, -1 up to the connection's end. Raises ValueError."""
    for name, value in (response or request).data.headers.fields:
        if len(value) > MAX_FRAMING_VALUE and name.lower() in (b"transfer-encoding", b"content-length"):
            raise ValueError("a length that is none")
    return http1.expected_http_body_size(request, response)


def _reader(expected: int | None) -> Any:
    return Chunks() if expected is None else make_body_reader(expected)


def _wake_event(side: Http1Connection, event: events.Event) -> events.Event:
    """It is our turn again: what was left to read is read as if it came now."""
    return events.DataReceived(side.conn, b"") if isinstance(event, events.Wakeup) else event


def _read_body(side: Http1Connection, event: events.Event) -> Commands:
    """Hand on what there is of a body. Raises BadChunk, TooFragmented or h11.ProtocolError."""
    assert side.stream_id is not None  # noqa: S101 - a body follows a head
    closed, unread, reader = isinstance(event, events.ConnectionClosed), False, side.body_reader
    if not isinstance(reader, Chunks):
        data, ended = _plain(reader, side.buf, closed=closed)
    elif closed:
        raise BadChunk
    else:
        # Handed on once for each go: chunks of one byte would cost a pass through every layer each.
        data, used, unread = reader.take(bytes(side.buf))
        side.buf.maybe_extract_at_most(used)
        ended = reader.ended
    if data:
        yield ReceiveHttp(side.ReceiveData(side.stream_id, data))
    if unread:
        yield commands.RequestWakeup(0) if isinstance(side, Http1Server) else WakeForAnswer()
    elif ended:
        # Trailers were dropped: they could smuggle what the head may not say.
        if side.request is not None and side.request.data.method != b"CONNECT":
            yield ReceiveHttp(side.ReceiveEndOfMessage(side.stream_id))
        is_request = isinstance(side, Http1Server)
        yield from side.mark_done(request=is_request, response=not is_request)


def _plain(reader: Any, buffer: ReceiveBuffer, *, closed: bool) -> tuple[bytes, bool]:
    """Return what there is of a body with a length, or up to the connection's end, and whether that is all of it."""
    found = reader.read_eof() if closed else reader(buffer)
    data = b""
    if isinstance(found, h11.Data):
        data = bytes(found.data)
        found = reader(buffer)
    return data, isinstance(found, h11.EndOfMessage)


class UpstreamClient(HttpClient):
    """Opens the connection and speaks HTTP/1.1 on it, or what `sides` has for what was agreed on."""

    def __init__(self, context: Context, sides: Mapping[bytes, Callable[[Context], HttpConnection]]) -> None:
        super().__init__(context)
        self._sides = sides

    def _handle_event(self, event: events.Event) -> Commands:
        problem = None if self.context.server.connected else (yield commands.OpenConnection(self.context.server))
        if not problem:
            self.child_layer = self._sides.get(self.context.server.alpn or b"", UpstreamSide)(self.context)
            self._handle_event = self.child_layer.handle_event  # type: ignore[method-assign]
            yield from self._handle_event(event)
        yield RegisterHttpConnection(self.context.server, problem)
