"""One request and its answer, from the first byte to the audit row."""

import time
from typing import Literal

import msgspec

from custody.credentials.prices import TokenPrices
from custody.credentials.target import Target
from custody.kit.jwt import AgentClaims
from proxy_addon.aws_chunks import SignedChunks
from proxy_addon.aws_request import Signature
from proxy_addon.charging import Charge
from proxy_addon.decode import Decoder
from proxy_addon.grpc import Messages
from proxy_addon.inject import Placed
from proxy_addon.mask import NOTHING, Masker, Needles
from proxy_addon.origin import Origin
from proxy_addon.payment import Payment
from proxy_addon.ranges import Cut, Wanted
from proxy_addon.refuse import Refusal
from proxy_addon.usage import Meter

# How the agent named its target: `GET /alias/...`, `GET https://host/...`, `CONNECT host:443`, or inside such a tunnel.
Form = Literal["gateway", "absolute", "connect", "tunnel"]


class Limits(msgspec.Struct, frozen=True):
    """Bounds of an exchange: seconds, and bytes of a request's body."""

    connect_seconds: float
    header_seconds: float
    idle_seconds: float
    max_body_bytes: int


class Ticket:
    """The right to dial one host, given by admission; without it no connection is ever opened."""

    __slots__ = ("exchange", "host", "http2", "port", "private_allowed")

    def __init__(
        self, exchange: "Exchange", host: str, port: int, *, private_allowed: bool, http2: bool = False
    ) -> None:
        """`http2` where HTTP/1.1 will not do."""
        self.exchange = exchange
        self.host = host
        self.port = port
        self.private_allowed = private_allowed
        self.http2 = http2

    @property
    def purpose(self) -> tuple[object, ...]:
        """The use of a connection opened with it: its owner, its route, and where it leads."""
        claims = self.exchange.claims
        who = (claims.tid, claims.sub, claims.inc) if claims is not None else None
        return who, self.exchange.route_id, self.host, self.port


class Exchange:
    """The facts of a request while it runs. Written by admission and by the stream, read by the audit."""

    __slots__ = (
        "abandoned",
        "address",
        "agent_closes",
        "answered",
        "began",
        "charge",
        "chunks",
        "claims",
        "deadline",
        "decoder",
        "ended",
        "failure",
        "form",
        "grpc",
        "held",
        "http10",
        "injected",
        "into_body",
        "masker",
        "meter",
        "method",
        "needles",
        "offered",
        "origin",
        "overdue",
        "parts",
        "payment",
        "pays_itself",
        "refusal",
        "replaced",
        "request_bytes",
        "request_id",
        "response_bytes",
        "retried",
        "route_id",
        "secret_id",
        "secret_version",
        "signature",
        "status",
        "target",
        "ticket",
        "upstream_closes",
        "usage",
        "user_agent",
        "wanted",
        "was_whole",
        "websocket",
    )

    def __init__(self, form: Form, method: str, request_id: str, address: str) -> None:
        self.form = form
        self.method = method
        self.request_id = request_id
        self.address = address
        self.user_agent: str | None = None
        self.began = time.monotonic()
        self.deadline = float("inf")
        self.claims: AgentClaims | None = None
        self.target: Target | None = None
        # In the gateway form alone.
        self.origin: Origin | None = None
        self.ticket: Ticket | None = None
        self.route_id: str | None = None
        self.secret_id: str | None = None
        self.secret_version: int | None = None
        # Of a priced call; and of a metered one its prices, and what reads how much it used.
        self.charge: Charge | None = None
        self.usage: TokenPrices | None = None
        self.meter: Meter | None = None
        # Why we answer ourselves, once that is decided; `failure` is what the way to the upstream ran into.
        self.refusal: Refusal | None = None
        self.failure: Refusal | None = None
        self.overdue = False
        self.injected = False
        # What goes into the body; it is let go of once it is there.
        self.into_body: list[Placed] = []
        # What signs the request once its body is here; what takes a client's signatures out of a body that streams.
        self.signature: Signature | None = None
        self.chunks: SignedChunks | None = None
        # Bytes of its bodies that are kept until the exchange is over.
        self.held = 0
        self.needles: Needles = NOTHING
        self.masker: Masker | Cut | Messages | None = None
        # Whether the route forwards ranges, and what this request asked for.
        self.parts = False
        self.wanted: Wanted | None = None
        self.decoder: Decoder | None = None
        # Why the answer keeps its head, and gets a body of our own.
        self.replaced: Refusal | None = None
        # What it may be paid for by; whether the agent brought a payment of its own.
        self.payment: Payment | None = None
        self.pays_itself = False
        self.websocket = False
        # A call by gRPC on a stream of HTTP/2: its client reads trailers, not bodies.
        self.grpc = False
        # The subprotocol with the token in it, where the agent offered no other: the upstream never hears of it.
        self.offered: bytes | None = None
        self.retried = False
        self.status: int | None = None
        self.request_bytes = 0
        self.response_bytes = 0
        # An agent that knows no chunks: its answer ends with its connection.
        self.http10 = False
        # Who said that this is the last exchange on its connection.
        self.agent_closes = False
        self.upstream_closes = False
        # Headers went to the agent; all of the answer came; the connection broke; the audit row is written.
        self.answered = False
        self.was_whole = False
        self.abandoned = False
        self.ended = False

    def __repr__(self) -> str:
        return f"Exchange({self.request_id}, {self.method}, {self.status})"

    @property
    def body_wanted(self) -> bool:
        """True if a credential goes into the body, or a digest of it is signed: it is held for that."""
        return bool(self.into_body) or self.signature is not None

    @property
    def seconds(self) -> float:
        """The seconds that it has taken so far."""
        return time.monotonic() - self.began

    @property
    def is_paid(self) -> bool:
        """True once it has a payment with it, ours or the agent's own: it is never repeated by itself."""
        return self.pays_itself or (self.payment is not None and self.payment.paid is not None)

    def mask(self, made: bytes) -> None:
        """Mask in the answer what was made of the credential for this request."""
        self.needles = Needles.together([self.needles, Needles.of(made)])

    def allow(self, seconds: float) -> None:
        """From now on this long until something must happen."""
        self.deadline = time.monotonic() + seconds
