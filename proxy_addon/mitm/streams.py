"""One request and its answer on an agent's connection, and the layer that holds them.

mitmproxy's stream is kept for what it does well; replaced is what it does unsafely here: it would read a refused
request to its end, answer in HTML, forward whatever an addon did not stop, and know no time-outs.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Protocol

from mitmproxy import http
from mitmproxy.connection import Client, Connection, ConnectionState, Server
from mitmproxy.net.http import status_codes
from mitmproxy.net.http.validate import validate_headers
from mitmproxy.proxy import commands, events, layer, tunnel
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import (
    DropStream,
    GetHttpConnection,
    GetHttpConnectionCompleted,
    HttpLayer,
    HTTPMode,
    HttpStream,
    SendHttp,
)
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._hooks import (
    HttpConnectHook,
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
)
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.proxy.utils import ReceiveBuffer

from proxy_addon import grpc, http2, refuse
from proxy_addon.admission import MAX_INJECTED_BODY
from proxy_addon.chunks import BadChunk
from proxy_addon.decode import BadCoding
from proxy_addon.exchange import Exchange, Form, Limits, Ticket
from proxy_addon.fragmentation import TooFragmented
from proxy_addon.frames import BadFrame, MaskedFrames
from proxy_addon.mask import mask_header
from proxy_addon.mitm.http1 import SPEAKS_HTTP2, AgentSide, Commands, UpstreamClient, WakeForAnswer
from proxy_addon.mitm.http2_upstream import UpstreamHttp2
from proxy_addon.mitm.tls import WANTS_HTTP2
from proxy_addon.payment import BODY_TOO_LARGE, MAX_DEMAND_BODY, MAX_PAID_BODY, Payment
from proxy_addon.peer import Peer
from proxy_addon.refuse import Refusal

EXCHANGE = "exchange"
DEMANDED = "demanded"
_PAYMENT_REQUIRED = 402
_OF_ANSWER = (ResponseData, ResponseEndOfMessage, ResponseTrailers, ResponseProtocolError)
# The one address of the port that is nobody's upstream.
_READY = b"/ready"
# Safe to send twice, so a kept connection that dies under the request costs nothing (RFC 9110 9.2.1).
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_REQUESTS_PER_CONNECTION = 10_000
# A connection may end while a priced call is charged: so many are tried.
_CONNECTIONS = 3
# Connections to upstreams that one connection of an agent keeps without using them.
_MAX_IDLE_UPSTREAMS = 8


@dataclass
class HttpChargeHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A priced call is about to leave."""

    flow: http.HTTPFlow


class AgentConnection(Protocol):
    """The part that an exchange needs of the connection that its agent opened."""

    limits: Limits
    peer: Peer
    # Set while more may be read from the agent.
    reading: asyncio.Event
    closing: bool
    # It is a stream of HTTP/2, so trailers go on.
    is_lane: bool

    @property
    def leaving(self) -> bool:
        """True once the process was told to stop, though it may serve for a while."""

    def begin(self, form: Form, request: http.Request) -> Exchange:
        """Begin an exchange for a request that has just come."""

    def end(self, exchange: Exchange, *, abandoned: bool = False) -> None:
        """End an exchange, once."""

    def hold(self, exchange: Exchange, count: int) -> Refusal | None:
        """Count bytes of a body that is held; the refusal where there is no room for them."""

    def cut(self, *, reset: bool) -> None:
        """End the agent's connection now."""

    def note_http2(self, ticket: Ticket) -> None:
        """Take note that an upstream speaks nothing but HTTP/2."""

    def refused_head(self, refusal: Refusal) -> str:
        """Count what was refused before it was a request; gives an id for the answer."""


class LightContext(Context):
    """A context that forks without making a server object each time, only to throw it away."""

    @classmethod
    def of(cls, context: Context) -> "LightContext":
        """The same context, forking lightly."""
        light = object.__new__(cls)
        light.client, light.options, light.server = context.client, context.options, context.server
        light.layers = context.layers.copy()
        return light

    def fork(self) -> "LightContext":
        """A copy with the same server and its own list of layers."""
        return LightContext.of(self)


class Upstream(Server):
    """A connection to an upstream. Only one with a ticket is ever dialled."""

    ticket: Ticket | None = None
    # Nothing is under way on it, so the next request may have it.
    idle = False
    uses = 0

    def fits(self, ticket: Ticket) -> bool:
        """Say whether another exchange may have it: same agent, route and name; some upstreams sign in connections."""
        own = self.ticket
        # A kept one may have died, and what carries a payment is not sent twice.
        if own is None or ticket.exchange.is_paid or own.purpose != ticket.purpose:
            return False
        # What may have become HTTP/2 carries all but websockets; what is HTTP/1.1 carries no gRPC.
        return not ticket.exchange.websocket if own.http2 else not ticket.http2


class Stream(HttpStream):
    """One exchange."""

    exchange: Exchange

    def __init__(self, context: Context, stream_id: int, handler: AgentConnection, mode: HTTPMode) -> None:
        super().__init__(context, stream_id)
        self._handler = handler
        self._mode = mode
        # Of a coded answer: everything has come; a turn was asked for to decode the rest of it.
        self._whole = self._waking = False
        self._trailers: list[tuple[bytes, bytes]] = []

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.Wakeup):
            self._waking = False
            if self.server_state == self.state_stream_response_body:
                yield from self._decode(b"")
        else:
            yield from super()._handle_event(event)

    # ---- the request

    def state_wait_for_request_headers(self, event: RequestHeaders) -> Commands:
        """A head came: have it judged before anything else happens."""
        request, handler = event.request, self._handler
        flow = self.flow = http.HTTPFlow(self.context.client, self.context.server)
        flow.request, flow.live = request, True
        self.exchange = exchange = handler.begin(_form_of(request, self._mode), request)
        flow.metadata[EXCHANGE] = exchange
        exchange.grpc = handler.is_lane and grpc.is_call(list(request.headers.fields))
        try:
            validate_headers(request)
        except ValueError:
            exchange.refusal = refuse.MALFORMED
        flow.metadata["has_body"] = not event.end_stream
        self.server_state = self.state_wait_for_response_headers
        if exchange.refusal is None and exchange.form == "gateway" and request.data.path == _READY:
            yield from self._say_readiness()
            return
        if exchange.refusal is None:
            yield (HttpConnectHook if exchange.form == "connect" else HttpRequestHeadersHook)(flow)
            if self._agent_left():
                return
        if exchange.refusal is not None:
            yield from self.refuse(exchange.refusal)
        elif exchange.form == "connect":
            yield from self._open_tunnel()
        elif exchange.ticket is None:
            # Neither refused nor admitted: admission did not run, so nothing goes out.
            yield from self.refuse(refuse.INTERNAL)
        else:
            yield from self._forward(event)

    def _say_readiness(self) -> Commands:
        """Tell anybody who asks whether new connections should come here; it opens the port when it can decide."""
        if self._handler.leaving:
            yield from self.refuse(refuse.LEAVING)
            return
        body = b'{"ok":true,"data":{"status":"ready"}}'
        yield from self._say(_answer_of(200, b"OK", [], body), doubtful=False)

    def _open_tunnel(self) -> Commands:
        self.client_state = self.state_done
        self.context.server.address = (self.flow.request.host, self.flow.request.port)
        self.child_layer = layer.NextLayer(self.context)
        self.exchange.status = 200
        self._handler.end(self.exchange)
        yield from self.handle_connect_finish()  # type: ignore[no-untyped-call]

    def _forward(self, event: RequestHeaders) -> Commands:
        if self.flow.request.headers.pop("expect", "").lower() == "100-continue" and not event.end_stream:
            yield commands.SendData(self.context.client, b"HTTP/1.1 100 Continue\r\n\r\n")
        payment = self.exchange.payment
        if payment is not None and self.exchange.chunks is not None:
            payment.skipped = BODY_TOO_LARGE
        if event.end_stream or self.exchange.body_wanted or (payment is not None and payment.is_open):
            self.client_state = self.state_consume_request_body
            return
        if (yield from self._set_out()):
            head = RequestHeaders(self.stream_id, self.flow.request, end_stream=False)
            yield SendHttp(head, self.context.server)
            self.exchange.allow(self._handler.limits.idle_seconds)
            self.client_state = self.state_stream_request_body

    def state_stream_request_body(self, event: events.Event) -> Commands:
        """Pass the body on as it comes, as far as it may go."""
        exchange = self.exchange
        if isinstance(event, RequestData):
            exchange.request_bytes += len(event.data)
            if exchange.request_bytes > self._handler.limits.max_body_bytes:
                yield from self.fail(refuse.BODY_TOO_LARGE)
                return
            exchange.allow(self._handler.limits.idle_seconds)
            yield from self._send_up(event.data, last=False)
        elif isinstance(event, RequestEndOfMessage):
            if not (yield from self._send_up(b"", last=True)):
                return
            self.client_state = self.state_done
            exchange.allow(self._handler.limits.header_seconds)
            yield SendHttp(event, self.context.server)
            if self.server_state == self.state_done:
                yield from self.flow_done()

    def _send_up(self, data: bytes, *, last: bool) -> layer.CommandGenerator[bool]:
        """Pass a piece of the body on, without a client's signatures; give false where that failed."""
        chunks = self.exchange.chunks
        if chunks is not None:
            try:
                data = chunks.end() if last else chunks.feed(data)
            except (BadChunk, TooFragmented) as problem:
                yield from self.fail(refuse.TOO_FRAGMENTED if isinstance(problem, TooFragmented) else refuse.MALFORMED)
                return False
        if data:
            yield SendHttp(RequestData(self.stream_id, data), self.context.server)
        return True

    def state_consume_request_body(self, event: events.Event) -> Commands:
        """Hold the body that a credential goes into; requests without a body pass here too."""
        exchange, payment = self.exchange, self.exchange.payment
        if isinstance(event, RequestData) and payment is not None and not exchange.body_wanted:
            yield from self._hold_for_payment(payment, event.data)
        elif isinstance(event, RequestData):
            exchange.request_bytes += len(event.data)
            if exchange.request_bytes > MAX_INJECTED_BODY:
                undigested = exchange.signature is not None and not exchange.into_body
                yield from self.refuse(refuse.BODY_NOT_DIGESTED if undigested else refuse.BODY_TOO_LARGE)
                return
            if (told := self._handler.hold(exchange, len(event.data))) is not None:
                yield from self.refuse(told)
                return
            self.request_body_buf += event.data
        elif isinstance(event, RequestEndOfMessage):
            self.client_state = self.state_done
            if exchange.body_wanted or payment is not None:
                body = self.flow.request.data.content = bytes(self.request_body_buf)
                self.request_body_buf = ReceiveBuffer()  # type: ignore[no-untyped-call]
                if payment is not None:
                    payment.note_body(body)
            if exchange.body_wanted:
                yield HttpRequestHook(self.flow)
                if self._agent_left():
                    return
                if exchange.refusal is not None or not exchange.injected:
                    yield from self.refuse(exchange.refusal or refuse.INTERNAL)
                    return
            yield from self._send_whole()

    def _hold_for_payment(self, payment: Payment, data: bytes) -> Commands:
        """Hold a body so that it can be sent again with a payment; a longer one streams, and is not paid for."""
        exchange = self.exchange
        self.request_body_buf += data
        exchange.request_bytes += len(data)
        fits = exchange.request_bytes <= MAX_PAID_BODY
        if fits and self._handler.hold(exchange, len(data)) is None:
            return
        payment.skipped = BODY_TOO_LARGE
        held = bytes(self.request_body_buf)
        self.request_body_buf = ReceiveBuffer()  # type: ignore[no-untyped-call]
        if (yield from self._set_out()):
            yield SendHttp(RequestHeaders(self.stream_id, self.flow.request, end_stream=False), self.context.server)
            exchange.allow(self._handler.limits.idle_seconds)
            self.client_state = self.state_stream_request_body
            yield from self._send_up(held, last=False)

    def _send_whole(self) -> Commands:
        if not (yield from self._set_out()):
            return
        content = self.flow.request.raw_content
        yield SendHttp(RequestHeaders(self.stream_id, self.flow.request, not content), self.context.server)
        if content:
            yield SendHttp(RequestData(self.stream_id, content), self.context.server)
        self.exchange.allow(self._handler.limits.header_seconds)
        yield SendHttp(RequestEndOfMessage(self.stream_id), self.context.server)

    def _set_out(self) -> layer.CommandGenerator[bool]:
        """A connection, and the charge of a priced call: only then may its head leave."""
        for _ in range(_CONNECTIONS):
            if not (yield from self.make_server_connection()):
                return False
            if self.exchange.charge is None:
                return True
            yield HttpChargeHook(self.flow)
            if self._agent_left():
                return False
            if self.exchange.refusal is not None:
                # Nothing was sent on it.
                self.context.server.idle = True
                yield from self.refuse(self.exchange.refusal)
                return False
            if self.context.server.state is ConnectionState.OPEN:
                return True
            # It ended while the charge was waited for; that holds for the next one.
        yield from self.fail(self._verdict())
        return False

    def make_server_connection(self) -> layer.CommandGenerator[bool]:
        """A connection for the exchange's ticket: a kept one of this agent's connection, or a new one."""
        ticket = self.exchange.ticket
        if ticket is None:
            yield from self.refuse(refuse.INTERNAL)
            return False
        # Dialling has its own limit; this one is for the TLS handshake behind it.
        self.exchange.allow(2 * self._handler.limits.connect_seconds)
        self._handler.reading.clear()
        connection, problem = yield Wanted(ticket)
        if problem is not None and WANTS_HTTP2 in str(problem).lower() and not ticket.http2:
            ticket.http2 = True
            connection, problem = yield Wanted(ticket)
        self._handler.reading.set()
        if problem is not None:
            yield from self.fail(self.exchange.failure or self._verdict())
            return False
        connection.idle = False
        connection.uses += 1
        self.context.server = self.flow.server_conn = connection
        if self.exchange.grpc and connection.alpn != b"h2":
            yield from self.fail(refuse.NO_HTTP2)
            return False
        return True

    # ---- the answer

    def state_wait_for_response_headers(self, event: ResponseHeaders) -> Commands:
        """The upstream answers: strip, mask, and pass on as it comes."""
        self.flow.response = event.response
        try:
            validate_headers(event.response)
        except ValueError:
            yield from self.fail(refuse.UPSTREAM_FAILED)
            return
        payment = self.exchange.payment
        if event.response.status_code == _PAYMENT_REQUIRED and payment is not None and payment.is_open:
            self._keep_back(event)
            return
        yield HttpResponseHeadersHook(self.flow)
        if self._agent_left():
            return
        exchange, response = self.exchange, self.flow.response
        if exchange.failure is not None:
            yield from self.fail(exchange.failure)
            return
        if exchange.http10:
            response.headers.pop("transfer-encoding", None)
        if exchange.replaced is not None and exchange.grpc:
            encoded = exchange.replaced is refuse.UPSTREAM_ENCODED
            yield from self.fail(refuse.MESSAGES_ENCODED if encoded else exchange.replaced)
            return
        if exchange.replaced is not None:
            yield from self._replace_body(response, exchange.replaced)
            return
        early = exchange.upstream_closes and self.client_state != self.state_done
        last = exchange.agent_closes or self._handler.closing or self._handler.leaving or early
        if last or self._handler.peer.requests >= _MAX_REQUESTS_PER_CONNECTION:
            response.headers["Connection"] = "close"
        exchange.answered, exchange.status = True, response.status_code
        exchange.allow(self._handler.limits.idle_seconds)
        yield SendHttp(ResponseHeaders(self.stream_id, response, event.end_stream), self.context.client)
        self.server_state = self.state_stream_response_body

    # ---- a demand for payment

    def _keep_back(self, head: ResponseHeaders) -> None:
        """Keep a demand back until it is known whether it is paid."""
        exchange, kept = self.exchange, Demanded(head.response)
        self._demanded = self.flow.metadata[DEMANDED] = kept
        exchange.upstream_closes = "close" in head.response.headers.get("connection", "").lower()
        exchange.allow(self._handler.limits.header_seconds)
        self.server_state = self.state_keep_demand

    def state_keep_demand(self, event: events.Event) -> Commands:
        """Read a demand's body, as far as one may go; then have it paid, or pass it on as it came."""
        kept, exchange = self._demanded, self.exchange
        if isinstance(event, ResponseData):
            kept.body += event.data
            full = len(kept.body) > MAX_DEMAND_BODY or self._handler.hold(exchange, len(event.data)) is not None
            if not full:
                return
        elif isinstance(event, ResponseEndOfMessage):
            kept.whole = True
        else:
            return
        exchange.allow(2 * self._handler.limits.header_seconds)
        yield PaymentHook(self.flow)
        if self._agent_left():
            return
        if exchange.refusal is not None:
            yield from self._let_go(kept)
            yield from self.refuse(exchange.refusal)
        elif exchange.is_paid:
            yield from self._let_go(kept)
            self.server_state = self.state_wait_for_response_headers
            yield from self._send_whole()
        else:
            yield from self._pass_demand(kept)

    def _let_go(self, kept: "Demanded") -> Commands:
        """Have the connection free again, or ended where more of the demand would come."""
        if kept.whole and not self.exchange.upstream_closes and isinstance(self.context.server, Upstream):
            self.context.server.idle = True
            return
        yield from self._drop_upstream()
        # More of it came while we waited: it belongs to no answer that is still to come.
        waiting = [event for event in self._paused_event_queue if not isinstance(event, _OF_ANSWER)]
        self._paused_event_queue.clear()
        self._paused_event_queue.extend(waiting)

    def _pass_demand(self, kept: "Demanded") -> Commands:
        """Go on with an answer that was kept back, as if it had come just now."""
        yield from self.state_wait_for_response_headers(ResponseHeaders(self.stream_id, kept.response, False))
        if self.server_state == self.state_stream_response_body:
            yield from self.state_stream_response_body(ResponseData(self.stream_id, bytes(kept.body)))
        if self.server_state == self.state_stream_response_body and kept.whole:
            yield from self.state_stream_response_body(ResponseEndOfMessage(self.stream_id))

    def state_stream_response_body(self, event: events.Event) -> Commands:
        """Pass the answer's body on, masked, as it comes."""
        exchange = self.exchange
        exchange.allow(self._handler.limits.idle_seconds)
        if isinstance(event, ResponseTrailers):
            self._keep_trailers(event)
            return
        if isinstance(event, ResponseEndOfMessage):
            self._whole = True
        if exchange.decoder is not None:
            yield from self._decode(event.data if isinstance(event, ResponseData) else b"")
        elif isinstance(event, ResponseData):
            yield from self._send_on(event.data)
        elif self._whole:
            yield from self._end_answer()

    def _keep_trailers(self, event: ResponseTrailers) -> None:
        """Mask what follows the body; in HTTP/1.1 it could say what the head may not, and is dropped."""
        if self._handler.is_lane:
            needles = self.exchange.needles
            found = http2.trailers_for_agent(list(event.trailers.fields))
            self._trailers = [mask_header(name, value, needles) for name, value in found]

    def _decode(self, data: bytes) -> Commands:
        """Decode as much as one turn may, and ask for another one if that is not all."""
        exchange, decoder = self.exchange, self.exchange.decoder
        assert decoder is not None  # noqa: S101 - the callers looked
        exchange.allow(self._handler.limits.idle_seconds)
        try:
            plain = decoder.feed(data)
            over = self._whole and not decoder.unread
            if over:
                decoder.end()
        except BadCoding:
            yield from self.fail(refuse.UPSTREAM_ENCODED)
            return
        grown, decoder.counted = decoder.memory - decoder.counted, decoder.memory
        if grown and (lack := self._handler.hold(exchange, grown)) is not None:
            yield from self.fail(lack)
            return
        yield from self._send_on(plain)
        if decoder.unread and not self._waking:
            self._waking = True
            yield WakeForAnswer()
        elif over and not self._waking:
            yield from self._end_answer()

    def _send_on(self, plain: bytes) -> Commands:
        exchange = self.exchange
        if exchange.meter is not None:
            exchange.meter.feed(plain)
        try:
            data = exchange.masker.feed(plain) if exchange.masker is not None else plain
        except BadCoding:
            yield from self.fail(refuse.MESSAGES_ENCODED)
            return
        exchange.response_bytes += len(data)
        if data:
            yield SendHttp(ResponseData(self.stream_id, data), self.context.client)

    def _end_answer(self) -> Commands:
        exchange = self.exchange
        exchange.was_whole = True
        rest = exchange.masker.end() if exchange.masker is not None else b""
        if rest:
            exchange.response_bytes += len(rest)
            yield SendHttp(ResponseData(self.stream_id, rest), self.context.client)
        if self._trailers:
            trailers = ResponseTrailers(self.stream_id, http.Headers(self._trailers))
            yield SendHttp(trailers, self.context.client)
        self.server_state = self.state_done
        if self.client_state == self.state_done:
            yield from self.flow_done()
        else:
            # Answered before the request was over: the rest of it is of no use to anybody.
            yield from self._answered_early()

    def _answered_early(self) -> Commands:
        self.client_state = self.state_errored
        yield commands.CloseConnection(self.context.server)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)
        self._handler.end(self.exchange)
        yield DropStream(self.stream_id)
        yield commands.CloseConnection(self.context.client)

    def flow_done(self) -> Commands:
        """The exchange is over, or it becomes a websocket."""
        response = self.flow.response
        assert response is not None  # noqa: S101 - the answer has ended
        if response.status_code == 101:
            self.child_layer = Relay(self.context, self._handler, self.exchange)
            self._handle_event = self.passthrough  # type: ignore[method-assign]
            yield from self.child_layer.handle_event(events.Start())
        else:
            self.flow.live = False
            if isinstance(self.context.server, Upstream) and not self.exchange.upstream_closes:
                self.context.server.idle = True
            else:
                yield from self._drop_upstream()
            self._handler.end(self.exchange)
            yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)

    # ---- when it goes wrong

    def handle_protocol_error(self, event: RequestProtocolError | ResponseProtocolError) -> Commands:
        """One side broke off."""
        if isinstance(event, RequestProtocolError):
            yield from self._agent_broke_off(event)
        elif self.server_state in (self.state_done, self.state_errored):
            yield DropStream(self.stream_id)
        elif event.message == SPEAKS_HTTP2 and self._may_change(self.exchange.ticket):
            yield from self._send_whole()
        elif not self.exchange.answered and self._may_repeat():
            self.exchange.retried = True
            if self.exchange.charge is not None:
                self.exchange.charge.use_up()
            yield from self._send_whole()
        else:
            yield from self.fail(self._verdict())

    def _may_change(self, ticket: Ticket | None) -> bool:
        """Say whether the request may go out again, by HTTP/2; who speaks nothing else understood none of it."""
        if ticket is None or ticket.http2:
            return False
        self._handler.note_http2(ticket)
        streamed = self.flow.metadata["has_body"] and self.flow.request.raw_content is None
        if streamed:
            self.exchange.failure = refuse.ONLY_HTTP2
        return (
            not (streamed or self.exchange.overdue or self.exchange.websocket or self.exchange.is_paid)
            and self.client_state == self.state_done
        )

    def _may_repeat(self) -> bool:
        """A kept connection that died before a byte of the answer, under a request that is safe to send again."""
        server, exchange = self.context.server, self.exchange
        return (
            isinstance(server, Upstream)
            and server.uses > 1
            and not (exchange.retried or exchange.overdue)
            and self.client_state == self.state_done
            and exchange.method in _REPEATABLE
            and not self.flow.metadata["has_body"]
            and not exchange.websocket
            and not exchange.is_paid
        )

    def _agent_left(self) -> bool:
        """Say whether the agent went away while a hook was waiting; then the event that says so comes next."""
        return any(
            isinstance(event, RequestProtocolError) and event.code == ErrorCode.CLIENT_DISCONNECTED
            for event in self._paused_event_queue
        )

    def _agent_broke_off(self, event: RequestProtocolError) -> Commands:
        if event.code == ErrorCode.GENERIC_CLIENT_ERROR:
            if not self.exchange.answered:
                fragmented = event.message == refuse.TOO_FRAGMENTED.code
                yield from self.fail(refuse.TOO_FRAGMENTED if fragmented else refuse.MALFORMED)
                return
            yield commands.CloseConnection(self.context.client)
        self.client_state = self.server_state = self.state_errored
        yield from self._drop_upstream()
        self._handler.end(self.exchange, abandoned=True)
        yield DropStream(self.stream_id)

    def _verdict(self) -> Refusal:
        return refuse.UPSTREAM_SLOW if self.exchange.overdue else self.exchange.failure or refuse.UPSTREAM_FAILED

    def fail(self, refusal: Refusal) -> Commands:
        """The way to or from the upstream broke: say so if the agent can still be told, else cut the answer off."""
        yield from self._drop_upstream()
        if not self.exchange.answered:
            yield from self.refuse(refusal)
            return
        self.client_state = self.server_state = self.state_errored
        self.exchange.failure = refusal
        self._handler.end(self.exchange, abandoned=True)
        response = self.flow.response
        framed = response is not None and {"content-length", "transfer-encoding"} & {*map(str.lower, response.headers)}
        # A body that ends with its connection must not look complete, so then the connection is reset, not closed.
        self._handler.cut(reset=not framed)
        yield DropStream(self.stream_id)

    def _drop_upstream(self) -> Commands:
        server = self.context.server
        if isinstance(server, Upstream) and server.state is not ConnectionState.CLOSED:
            yield commands.CloseConnection(server)

    def refuse(self, refusal: Refusal) -> Commands:
        """Answer ourselves, at once. What is still to come of the request is dropped, and then the connection."""
        exchange = self.exchange
        exchange.refusal = refusal
        # Where a request could be read in two ways, so could whatever follows it.
        doubtful = refusal.code == refuse.MALFORMED.code
        made = _grpc_response_of if exchange.grpc else _response_of
        response = made(refusal, exchange.request_id)
        if exchange.payment is not None:
            response.headers.fields += tuple(exchange.payment.headers())
        yield from self._say(response, doubtful=doubtful)
        exchange.status = refusal.status

    def _replace_body(self, response: http.Response, refusal: Refusal) -> Commands:
        """Pass the head on with a body of our own, and let go of the upstream's."""
        yield from self._drop_upstream()
        body = refuse.body_of(refusal, self.exchange.request_id)
        response.data.http_version, response.data.content = b"HTTP/1.1", body
        response.headers["Content-Length"] = str(len(body))
        yield from self._say(response, doubtful=False)

    def _say(self, response: http.Response, *, doubtful: bool) -> Commands:
        exchange = self.exchange
        exchange.status, exchange.answered = response.status_code, True
        whole = self.client_state == self.state_done or not self.flow.metadata.get("has_body")
        if not whole or exchange.agent_closes or self._handler.closing or self._handler.leaving or doubtful:
            response.headers["Connection"] = "close"
        self.flow.response = response
        self.client_state = self.server_state = self.state_errored
        self.flow.live = False
        body = response.data.content or b""
        head_only = self.flow.request.method == "HEAD"
        yield SendHttp(ResponseHeaders(self.stream_id, response, head_only), self.context.client)
        if not head_only:
            yield SendHttp(ResponseData(self.stream_id, body), self.context.client)
        self._handler.end(exchange)
        yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)
        if not whole:
            yield commands.CloseConnection(self.context.client)


def _response_of(refusal: Refusal, request_id: str) -> http.Response:
    headers = [(b"X-Request-Id", request_id.encode()), (refuse.ERROR, refusal.code.encode()), *refusal.headers]
    reason = status_codes.RESPONSES.get(refusal.status, "Refused").encode()
    return _answer_of(refusal.status, reason, headers, refuse.body_of(refusal, request_id))


def _grpc_response_of(refusal: Refusal, request_id: str) -> http.Response:
    """The same for a client of gRPC, which finds status and sentence in the head of an answer without a body."""
    headers = [(b"X-Request-Id", request_id.encode()), (refuse.ERROR, refusal.code.encode()), *refusal.headers]
    headers = [(b"Content-Type", b"application/grpc"), (b"Content-Length", b"0"), *headers]
    headers.append((b"grpc-status", b"%d" % grpc.status_of(refusal.status)))
    headers.append((b"grpc-message", refusal.message.encode()))
    now = time.time()  # noqa: TID251 - the library wants it so
    return http.Response(b"HTTP/1.1", 200, b"OK", http.Headers(headers), b"", None, now, now)


def _answer_of(status: int, reason: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> http.Response:
    framing = [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(body)).encode())]
    now = time.time()  # noqa: TID251 - the library wants it so
    return http.Response(b"HTTP/1.1", status, reason, http.Headers([*framing, *headers]), body, None, now, now)


def _form_of(request: http.Request, mode: HTTPMode) -> Form:
    if mode is HTTPMode.transparent:
        return "tunnel"
    if request.data.method == b"CONNECT":
        return "connect"
    return "absolute" if request.authority else "gateway"


class Demanded:
    """An answer that asks for a payment, and as much of its body as was read."""

    def __init__(self, response: http.Response) -> None:
        self.response = response
        self.body = bytearray()
        self.whole = False


@dataclass
class PaymentHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A demand for payment is here: pay it, or leave it as it is."""

    name = "payment"
    flow: http.HTTPFlow


class Wanted(GetHttpConnection):
    """A stream's wish for a connection."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__((ticket.host, ticket.port), tls=True, via=None)
        self.ticket = ticket


class Layer(HttpLayer):
    """The exchanges of one agent's connection, or of one tunnel in it, and their upstream connections."""

    def __init__(self, context: Context, mode: HTTPMode, handler: AgentConnection) -> None:
        super().__init__(context, mode)
        self._handler = handler

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.Start):
            # The one seam that mitmproxy leaves for another HTTP/1 parser.
            self.connections[self.context.client] = AgentSide(self.context.fork(), self._handler.refused_head)
        elif isinstance(event, events.ConnectionEvent) and event.connection not in self.connections:
            return  # the last word of a connection that was let go of already
        yield from super()._handle_event(event)

    def make_stream(self, stream_id: int) -> Commands:
        """Our stream instead of mitmproxy's."""
        stream = self.streams[stream_id] = Stream(self.context.fork(), stream_id, self._handler, self.mode)
        yield from self.event_to_child(stream, events.Start())

    def get_connection(self, event: GetHttpConnection, *, reuse: bool = True) -> Commands:
        """A kept connection to the same *name* and port, or a new one with this ticket; nothing else is dialled."""
        assert isinstance(event, Wanted)  # noqa: S101 - our streams make no other
        for connection in list(self.connections):
            if not isinstance(connection, Upstream):
                continue
            if connection.state is ConnectionState.CLOSED and connection not in self.waiting_for_establishment:
                del self.connections[connection]
            elif reuse and connection.idle and connection.connected and connection.fits(event.ticket):
                stream = self.command_sources.pop(event)
                yield from self.event_to_child(stream, GetHttpConnectionCompleted(event, (connection, None)))
                return
        idle = [connection for connection in self.connections if isinstance(connection, Upstream) and connection.idle]
        if len(idle) >= _MAX_IDLE_UPSTREAMS:
            yield commands.CloseConnection(idle[0])
        context = self.context.fork()
        server = context.server = Upstream(address=event.address, sni=event.address[0], tls=True)
        server.ticket = event.ticket
        stack = tunnel.LayerStack()
        stack /= ServerTLSLayer(context)
        stack /= UpstreamClient(context, {b"h2": lambda own: UpstreamHttp2(own, self._handler.reading)})
        self.connections[server] = stack[0]
        self.waiting_for_establishment[server].append(event)
        yield from self.event_to_child(stack[0], events.Start())


class Relay(layer.Layer):
    """An open websocket: bytes both ways as they come, nothing kept; what the upstream says is masked."""

    def __init__(self, context: Context, handler: AgentConnection, exchange: Exchange) -> None:
        super().__init__(context)
        self._handler = handler
        self._exchange = exchange
        self._frames = MaskedFrames(exchange.needles)

    def _handle_event(self, event: events.Event) -> Commands:
        exchange = self._exchange
        exchange.allow(self._handler.limits.idle_seconds)
        if isinstance(event, events.DataReceived):
            yield from self._pass_on(event.connection, event.data)
        elif isinstance(event, events.Wakeup):
            yield from self._pass_on(self.context.server, b"")
        elif isinstance(event, events.ConnectionClosed):
            for connection in (self.context.server, self.context.client):
                if connection.state is not ConnectionState.CLOSED:
                    yield commands.CloseConnection(connection)
            self._handler.end(exchange, abandoned=exchange.overdue)

    def _pass_on(self, source: Connection, data: bytes) -> Commands:
        if isinstance(source, Client):
            self._exchange.request_bytes += len(data)
            yield commands.SendData(self.context.server, data)
            return
        try:
            masked = self._frames.feed(bytes(data))
        except (BadFrame, TooFragmented):
            self._handler.end(self._exchange, abandoned=True)
            self._handler.cut(reset=False)
            return
        self._exchange.response_bytes += len(masked)
        if masked:
            yield commands.SendData(self.context.client, masked)
        if self._frames.unread:
            # The rest waits until it is this agent's turn again.
            yield commands.RequestWakeup(0)


def exchange_of(flow: http.HTTPFlow) -> Exchange:
    """The exchange behind a flow."""
    found: Any = flow.metadata[EXCHANGE]
    assert isinstance(found, Exchange)  # noqa: S101 - only streams put it there
    return found
