"""HTTP/2 with an upstream: one exchange at a time on a connection, so that its flow control is the connection's own."""

import asyncio
import time
from typing import Final

import h2.connection
import h2.events
import h2.exceptions
from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.net.http import status_codes
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._base import HttpConnection, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)

from proxy_addon.http2 import BadFrames, BadHead, Frames, answer_head, body_size, upstream_head
from proxy_addon.mitm.http1 import MAX_INTERIM, MAX_INTERIM_PER_SECOND, WakeForAnswer
from proxy_addon.mitm.http2 import Commands, new_connection

# Bytes of a request that wait for room in the upstream's window before no more is read of it.
MAX_WAITING: Final = 64 * 1024
_FAULTS = (BadFrames, h2.exceptions.ProtocolError, ValueError, IndexError, KeyError)


class UpstreamHttp2(HttpConnection):
    """The upstream's connection."""

    def __init__(self, context: Context, reading: asyncio.Event) -> None:
        """`reading` is set while more may be read from the agent."""
        super().__init__(context, context.server)
        self._reading = reading
        self._holding = False
        self._h2 = new_connection(client=True)
        self._frames = Frames(preface=False)
        # The exchange under way, by the number that the agent's side knows it by, and by ours.
        self._exchange = self._stream = 0
        self._upload = bytearray()
        self._whole = self._ended = False
        self._method = b""
        # Bytes of the answer's body that must still come; None where its head does not say.
        self._left: int | None = None
        self._interim, self._interim_since = 0, 0.0
        self._leaving = False

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, HttpEvent):
            yield from self._send(event)
        elif isinstance(event, events.Start):
            self._h2.initiate_connection()
            yield from self._flush()
        elif isinstance(event, events.ConnectionClosed):
            yield from self._break_off("the upstream closed the connection")
        else:
            if isinstance(event, events.DataReceived):
                self._frames.give(event.data)
            yield from self._read()

    # ---- what goes

    def _send(self, event: HttpEvent) -> Commands:
        try:
            if isinstance(event, RequestHeaders):
                self._begin(event)
            elif isinstance(event, RequestData):
                self._upload += event.data
            elif isinstance(event, RequestEndOfMessage):
                self._whole = True
            else:
                yield from self._close()
                return
            self._pump()
        except (*_FAULTS, BadHead):
            yield from self._break_off("the request cannot be sent by HTTP/2")
            return
        yield from self._flush()

    def _begin(self, event: RequestHeaders) -> None:
        self._exchange, self._stream = event.stream_id, self._h2.get_next_available_stream_id()
        self._upload.clear()
        self._whole = self._ended = False
        self._left = None
        data = event.request.data
        self._method = data.method
        self._h2.send_headers(self._stream, upstream_head(data.method, data.path, list(data.headers.fields)))

    def _pump(self) -> None:
        """Send what there is room for, and have no more read than waits."""
        while self._upload and self._stream and not self._ended:
            room = min(self._h2.local_flow_control_window(self._stream), self._h2.max_outbound_frame_size)
            if room <= 0:
                break
            self._h2.send_data(self._stream, bytes(self._upload[:room]))
            del self._upload[:room]
            self._frames.note_answers(1)
        if self._whole and self._stream and not self._upload and not self._ended:
            self._ended = True
            self._h2.end_stream(self._stream)
        if (len(self._upload) > MAX_WAITING) is not self._holding:
            self._hold(not self._holding)

    def _hold(self, holding: bool) -> None:
        self._holding = holding
        if holding:
            self._reading.clear()
        else:
            self._reading.set()

    def _flush(self) -> Commands:
        if data := self._h2.data_to_send():
            yield commands.SendData(self.conn, data)

    # ---- what comes

    def _read(self) -> Commands:
        try:
            data, more = self._frames.take()
            heard = self._h2.receive_data(data) if data else []
        except _FAULTS:
            yield from self._break_off("the upstream's frames make no sense")
            return
        for one in heard:
            if self.conn.state is ConnectionState.CLOSED:
                return
            try:
                yield from self._hear(one)
            except (*_FAULTS, BadHead):
                yield from self._break_off("the upstream's answer makes no sense")
                return
        if self.conn.state is ConnectionState.CLOSED:
            return
        yield from self._flush()
        if more:
            yield WakeForAnswer()
        elif self._leaving and not self._stream:
            yield from self._close()

    def _hear(self, one: h2.events.Event) -> Commands:
        if isinstance(one, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self._pump()
        elif isinstance(one, h2.events.ConnectionTerminated):
            if one.error_code or (self._stream and (one.last_stream_id or 0) < self._stream):
                yield from self._break_off("the upstream ended the connection")
            self._leaving = True
        elif getattr(one, "stream_id", None) != self._stream or not self._stream:
            if isinstance(one, h2.events.DataReceived):
                self._h2.acknowledge_received_data(one.flow_controlled_length or 0, one.stream_id)
        elif isinstance(one, h2.events.InformationalResponseReceived):
            self._count_interim()
        elif isinstance(one, h2.events.ResponseReceived):
            yield from self._answer(one)
        elif isinstance(one, h2.events.DataReceived):
            self._h2.acknowledge_received_data(one.flow_controlled_length or 0, one.stream_id)
            if one.data:
                self._count_body(len(one.data))
                yield ReceiveHttp(ResponseData(self._exchange, one.data))
        elif isinstance(one, h2.events.TrailersReceived):
            yield ReceiveHttp(ResponseTrailers(self._exchange, http.Headers(one.headers or [])))
        elif isinstance(one, h2.events.StreamEnded):
            yield from self._end_exchange()
        elif isinstance(one, h2.events.StreamReset):
            yield from self._break_off("the upstream gave up the stream")

    def _end_exchange(self) -> Commands:
        if self._left:
            raise BadHead
        exchange, self._stream = self._exchange, 0
        self._leaving = self._leaving or not self._ended
        self._hold(False)
        yield ReceiveHttp(ResponseEndOfMessage(exchange))

    def _count_body(self, count: int) -> None:
        """Insist on the length that the head says: the library does not where no body may be, or trailers end it.

        To an agent that speaks HTTP/1.1 whatever is too much would be its next answer, and that one's head what lacks.
        """
        if self._left is not None:
            self._left -= count
            if self._left < 0:
                raise BadHead

    def _count_interim(self) -> None:
        now = time.monotonic()
        self._interim_since = self._interim_since if self._interim else now
        self._interim += 1
        if self._interim > MAX_INTERIM + MAX_INTERIM_PER_SECOND * (now - self._interim_since):
            raise BadHead

    def _answer(self, one: h2.events.ResponseReceived) -> Commands:
        self._interim = 0
        ended = one.stream_ended is not None
        status, fields = answer_head(one.headers or [], method=self._method, ended=ended)
        self._left = body_size(status, fields, method=self._method)
        if ended and self._left:
            raise BadHead
        reason = status_codes.RESPONSES.get(status, "").encode()
        now = time.time()  # noqa: TID251 - the library wants it so
        made = http.Response(b"HTTP/1.1", status, reason, http.Headers(fields), None, None, now, None)
        yield ReceiveHttp(ResponseHeaders(self._exchange, made, ended))

    # ---- the end

    def _close(self) -> Commands:
        self._hold(False)
        self._stream = 0
        if self.conn.state is not ConnectionState.CLOSED:
            yield commands.CloseConnection(self.conn)

    def _break_off(self, reason: str) -> Commands:
        exchange, stream = self._exchange, self._stream
        yield from self._close()
        if stream:
            yield ReceiveHttp(ResponseProtocolError(exchange, reason, ErrorCode.GENERIC_SERVER_ERROR))
