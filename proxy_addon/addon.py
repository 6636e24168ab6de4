"""The hooks, and nothing else: what mitmproxy hears is handed to admission, and what admission says is done.

Every hook fails closed: whatever it raises becomes a refusal on the exchange, never a request that goes on.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy import http
from mitmproxy.tls import ClientHelloData, TlsData

from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from proxy_addon import decode, grpc, inject, origin, ranges, refuse
from proxy_addon.admission import Admission, Arrived, Refused
from proxy_addon.agent_token import OFFERS
from proxy_addon.aws_request import Signature, digest_of
from proxy_addon.decode import BadCoding
from proxy_addon.exchange import Exchange
from proxy_addon.into_body import BodyUnfit, into_body
from proxy_addon.mask import Masker, mask_header, mask_text, unreadable
from proxy_addon.mitm.handler import Handler, Hooks, next_layer
from proxy_addon.mitm.streams import DEMANDED, Demanded, exchange_of
from proxy_addon.mitm.tls import Certificates
from proxy_addon.payment import MAX_DEMAND_BODY, SKIPPED, Payer, without_demand
from proxy_addon.usage import Meter

log = logger("proxy")
_BODILESS = (204, 304)
_UNAUTHORIZED = 401
_PAYMENT_REQUIRED = 402
_PARTIAL = 206


class Addon:
    """One method a hook."""

    def __init__(self, admission: Admission, certificates: Certificates, payer: Payer) -> None:
        self._admission = admission
        self._payer = payer
        self._certificates = certificates

    def hooks(self) -> Hooks:
        """Every hook that this addon listens to; the others of mitmproxy reach nobody."""
        return {
            "next_layer": next_layer,
            "requestheaders": _fails_closed(self.requestheaders),
            "http_charge": _fails_closed(self.http_charge),
            "http_connect": _fails_closed(self.http_connect),
            "request": _fails_closed_now(self.request),
            "payment": _fails_closed(self.payment),
            "responseheaders": _fails_closed_now(self.responseheaders),
            "tls_clienthello": self.tls_clienthello,
            "tls_start_client": self.tls_start_client,
            "tls_start_server": self.tls_start_server,
            "tls_failed_server": self.tls_failed_server,
        }

    async def requestheaders(self, handler: Handler, flow: http.HTTPFlow, exchange: Exchange) -> None:
        """A request's head is here: strip the token, decide, inject."""
        request = flow.request
        arrived = _arrival(flow, exchange)
        # Nothing that fails from here on can let the token or the named host through.
        request.headers = http.Headers()
        out = await self._admission.request(arrived, exchange, handler.peer)
        request.scheme, request.authority, request.http_version = "https", "", "HTTP/1.1"
        request.data.host, request.data.port = out.host, out.port
        request.data.path = out.path
        request.data.headers = http.Headers(out.headers)

    async def http_connect(self, handler: Handler, flow: http.HTTPFlow, exchange: Exchange) -> None:
        """A tunnel is asked for."""
        arrived = _arrival(flow, exchange)
        flow.request.headers = http.Headers()
        await self._admission.tunnel(arrived, exchange, handler.peer)

    async def http_charge(self, _handler: Handler, _flow: http.HTTPFlow, exchange: Exchange) -> None:
        """A priced call is about to leave."""
        await self._admission.charge(exchange)

    def request(self, _handler: Handler, flow: http.HTTPFlow, exchange: Exchange) -> None:
        """The whole body is here, because the credential goes into it, or its digest is signed."""
        headers = flow.request.headers
        body = flow.request.data.content or b""
        placed, exchange.into_body = exchange.into_body, []
        for one in placed:
            body = into_body(headers.get("content-type"), headers.get("content-encoding"), body, one)
        headers.pop("transfer-encoding", None)
        headers["content-length"] = str(len(body))
        flow.request.data.content = body
        if exchange.signature is not None:
            self._sign(flow.request, exchange, exchange.signature, body)
        exchange.injected = True

    @staticmethod
    def _sign(request: http.Request, exchange: Exchange, signature: Signature, body: bytes) -> None:
        exchange.signature = None
        fields, made = signature.sign(
            exchange.method, request.headers["host"], request.data.path, list(request.headers.fields), digest_of(body)
        )
        request.data.headers = http.Headers(fields)
        exchange.mask(made)

    async def payment(self, _handler: Handler, flow: http.HTTPFlow, exchange: Exchange) -> None:
        """An upstream demands a payment, and a payment route covers the request: pay, or leave the demand as it is."""
        payment, demanded = exchange.payment, flow.metadata[DEMANDED]
        assert payment is not None  # noqa: S101 - only then is it asked
        payment.charge = exchange.charge.id if exchange.charge is not None else None
        body = _plain_body(demanded) if exchange.method != "HEAD" else b""
        refusal = await self._payer.pay(payment, _place(exchange), list(demanded.response.headers.fields), body)
        if refusal is not None:
            raise Refused(refusal)
        if payment.paid is not None:
            flow.request.headers[payment.paid.name] = payment.paid.value
            if exchange.charge is not None:
                exchange.charge.cover()

    def responseheaders(self, handler: Handler, flow: http.HTTPFlow, exchange: Exchange) -> None:
        """The upstream's head is here: nothing of the credential may come back."""
        response = flow.response
        assert response is not None  # noqa: S101 - this hook says so
        upgraded = response.status_code == 101
        if upgraded != (exchange.websocket and upgraded):
            exchange.failure = refuse.UPSTREAM_FAILED
            return
        if response.status_code == _UNAUTHORIZED:
            self._admission.distrust(exchange)
        has_body = exchange.method != "HEAD" and response.status_code not in _BODILESS and not upgraded
        fields, cut = _of_part(exchange, response)
        if exchange.failure is not None:
            return
        if has_body and _transfer_codings(list(response.headers.fields))[-1:] not in ([], ["chunked"]):
            # Nothing but the end of the connection would say where it ends, and its own name says otherwise.
            exchange.failure = refuse.UPSTREAM_FAILED
            return
        exchange.upstream_closes = "close" in response.headers.get("connection", "").lower()
        fields = inject.returning_headers(fields, websocket=upgraded)
        if not upgraded:
            fields = _as_plain(handler, response, exchange, fields, has_body=has_body)
        masked = [mask_header(name, value, exchange.needles) for name, value in _offers(exchange, fields)]
        if response.status_code in _BODILESS:
            # Nothing follows such a head, though this would say that something does.
            masked = [(name, value) for name, value in masked if name.lower() != b"transfer-encoding"]
        removed: list[str] = []
        if exchange.origin is not None:
            masked, removed = origin.confine(
                masked, exchange.origin, lambda text: mask_text(text, exchange.needles), response.status_code
            )
        masked.append((b"X-Service-Request-Id", exchange.request_id.encode()))
        masked = self._tell_of_payment(exchange, response.status_code, masked)
        if upgraded and exchange.offered is not None and not any(name.lower() == OFFERS for name, _ in masked):
            # A browser ends a websocket for which none of the subprotocols that it offered was chosen.
            masked.append((b"Sec-WebSocket-Protocol", exchange.offered))
        if removed:
            masked.append((b"X-Service-Removed", ", ".join(removed).encode()))
        response.data.headers = http.Headers(masked)
        response.data.reason = mask_text(response.data.reason, exchange.needles)
        if exchange.usage is not None and has_body and exchange.replaced is None:
            exchange.meter = Meter(
                exchange.usage, response.headers.get("content-type"), lambda count: handler.keep(exchange, count)
            )
        if exchange.replaced is not None:
            response.data.headers = http.Headers(_of_our_body(masked, exchange.replaced))
        elif has_body and (cut is not None or exchange.needles):
            # Where a message ends the upstream says, so only of one that was called by gRPC its word counts.
            messages = cut is None and exchange.grpc and grpc.is_call(masked)
            exchange.masker = grpc.Messages(exchange.needles) if messages else cut or Masker(exchange.needles)

    def _tell_of_payment(self, exchange: Exchange, status: int, fields: inject.Headers) -> inject.Headers:
        """Tell what was paid, or why nothing was; a demand that follows a payment stays here."""
        payment = exchange.payment
        if payment is None:
            return fields
        if status == _PAYMENT_REQUIRED and payment.skipped is not None:
            return [*fields, (SKIPPED, payment.skipped.encode())]
        payment.note_answer(fields)
        if status == _PAYMENT_REQUIRED and payment.paid is not None:
            self._payer.note_not_accepted(_place(exchange))
            exchange.replaced = refuse.PAYMENT_NOT_ACCEPTED
            fields = without_demand(fields)
        return [*fields, *payment.headers()]

    def tls_clienthello(self, handler: Handler, data: ClientHelloData) -> None:
        """Inside a tunnel the name asked for must be the one that the tunnel leads to."""
        sni, tunnel = data.client_hello.sni, handler.peer.tunnel
        if tunnel is None or (sni is not None and sni.lower() != tunnel[0]):
            handler.cut(reset=False)

    def tls_start_client(self, handler: Handler, data: TlsData) -> None:
        """The tunnel's certificate, made for its host by our own authority."""
        if handler.peer.tunnel is not None:
            self._certificates.start_client(data, handler.peer.tunnel[0])

    def tls_start_server(self, _handler: Handler, data: TlsData) -> None:
        """An upstream's TLS: its certificate must hold for the name that was asked for."""
        self._certificates.start_server(data)

    def tls_failed_server(self, _handler: Handler, data: TlsData) -> None:
        """Say why; the agent only hears that the upstream failed."""
        self._certificates.note_failure(data)
        host = getattr(data.conn, "sni", None)
        log.warning("TLS with an upstream failed", extra={"host": host, "reason": data.conn.error})


def _place(exchange: Exchange) -> tuple[str, str, str]:
    claims, target = exchange.claims, exchange.target
    assert claims is not None  # noqa: S101 - it was admitted
    assert target is not None  # noqa: S101 - the same
    return claims.tid, claims.sub, f"{target.host}:{target.port}"


def _plain_body(demanded: Demanded) -> bytes:
    """The body of a demand as it would be shown; empty where it is not whole, or cannot be read within its bounds."""
    fields = list(demanded.response.headers.fields)
    content = decode.codings_in(_values_of(fields, b"content-encoding"))
    transfer = decode.codings_in(name for name in _transfer_codings(fields) if name != "chunked")
    if not demanded.whole or content is None or transfer is None:
        return b""
    if not content and not transfer:
        return bytes(demanded.body)
    decoder, plain = decode.Decoder(content + transfer), b""
    try:
        plain = decoder.feed(bytes(demanded.body))
        while decoder.unread and len(plain) <= MAX_DEMAND_BODY:
            plain += decoder.feed(b"")
        if decoder.unread:
            return b""
        decoder.end()
    except BadCoding:
        return b""
    return plain


def _arrival(flow: http.HTTPFlow, exchange: Exchange) -> Arrived:
    request = flow.request
    length = request.headers.get("content-length", "")
    named = request.data.authority.decode("ascii", "replace")
    return Arrived(
        method=exchange.method,
        path=request.data.path,
        headers=list(request.headers.fields),
        http11=request.data.http_version == b"HTTP/1.1",
        authority=named or None,
        has_body=bool(flow.metadata["has_body"]),
        content_length=int(length) if length.isascii() and length.isdigit() else None,
    )


def _of_part(exchange: Exchange, response: http.Response) -> tuple[inject.Headers, ranges.Cut | None]:
    """The head, and what cuts the body where it is a part that was asked for.

    In any other part, and in one of a compressed text, a credential could pass unseen.
    """
    fields = list(response.headers.fields)
    if response.status_code != _PARTIAL:
        return fields, None
    try:
        if exchange.wanted is None or decode.codings_in(_values_of(fields, b"content-encoding")) != []:
            raise ranges.BadPart
        return ranges.cut_to(exchange.wanted, fields, exchange.needles)
    except ranges.BeyondEnd as problem:
        exchange.failure = refuse.beyond_end(problem.total)
    except ranges.BadPart:
        exchange.failure = refuse.UPSTREAM_FAILED
    return fields, None


def _offers(exchange: Exchange, fields: inject.Headers) -> inject.Headers:
    """The head as it is where parts of this answer may be asked for, else one that offers none."""
    return fields if exchange.parts and exchange.decoder is None else ranges.not_offered(fields)


def _as_plain(
    handler: Handler, response: http.Response, exchange: Exchange, fields: inject.Headers, *, has_body: bool
) -> inject.Headers:
    """The headers of the answer as it goes on, plain; what cannot be made plain leaves its head behind."""
    content = decode.codings_in(_values_of(fields, b"content-encoding"))
    transfer = decode.codings_in(name for name in _transfer_codings(fields) if name != "chunked")
    hidden = grpc.hides_messages(fields) or unreadable(response.headers.get("content-type"))
    if content is None or transfer is None or hidden:
        exchange.replaced = refuse.UPSTREAM_ENCODED if has_body else None
        return fields
    if content:
        fields = decode.plain_head(fields)
    if not has_body or not (content or transfer):
        return fields
    exchange.decoder = decode.Decoder(content + transfer)
    exchange.decoder.counted = exchange.decoder.memory
    exchange.replaced = handler.hold(exchange, exchange.decoder.counted)
    exchange.upstream_closes = exchange.upstream_closes or response.data.http_version != b"HTTP/1.1"
    response.data.http_version = b"HTTP/1.1"
    framing = (b"content-length", b"transfer-encoding")
    fields = [(name, value) for name, value in fields if name.lower() not in framing]
    return [*fields, (b"Transfer-Encoding", b"chunked")]


def _values_of(fields: inject.Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in fields if name.lower() == wanted]


def _transfer_codings(fields: inject.Headers) -> list[str]:
    values = _values_of(fields, b"transfer-encoding")
    return [name.strip().lower() for value in values for name in value.split(",")]


def _of_our_body(fields: inject.Headers, replaced: refuse.Refusal) -> inject.Headers:
    """The upstream's headers around a body of our own, which its checksums do not fit: a client that looks, sees it."""
    dropped = (b"content-length", b"transfer-encoding", b"content-encoding", b"content-type", b"content-range")
    kept = [(name, value) for name, value in fields if name.lower() not in dropped]
    return [*kept, (b"Content-Type", b"application/json"), (refuse.BODY, replaced.code.encode())]


def _refusal_of(problem: Exception, exchange: Exchange) -> refuse.Refusal:
    if isinstance(problem, Refused):
        return problem.refusal
    if isinstance(problem, BodyUnfit):
        return refuse.BODY_UNFIT
    if isinstance(problem, CustodyError):
        return refuse.from_error(problem)
    log.error("a hook failed", extra={"request_id": exchange.request_id}, exc_info=problem)
    return refuse.INTERNAL


def _fails_closed(
    hook: Callable[[Handler, http.HTTPFlow, Exchange], Awaitable[None]],
) -> Callable[[Handler, http.HTTPFlow], Any]:
    async def guard(handler: Handler, flow: http.HTTPFlow) -> None:
        exchange = exchange_of(flow)
        try:
            await hook(handler, flow, exchange)
        except Exception as problem:
            exchange.ticket = None
            exchange.refusal = _refusal_of(problem, exchange)

    return guard


def _fails_closed_now(
    hook: Callable[[Handler, http.HTTPFlow, Exchange], None],
) -> Callable[[Handler, http.HTTPFlow], None]:
    def guard(handler: Handler, flow: http.HTTPFlow) -> None:
        exchange = exchange_of(flow)
        try:
            hook(handler, flow, exchange)
        except Exception as problem:
            exchange.ticket = None
            exchange.refusal = exchange.failure = _refusal_of(problem, exchange)

    return guard
