"""One request and its answer, from the first byte to the audit row."""

import time
from typing import Literal

import msgspec

from custody.credentials.target import Target
from custody.kit.jwt import AgentClaims
from proxy_addon.decode import Decoder
from proxy_addon.inject import Placed
from proxy_addon.mask import NOTHING, Masker, Needles
from proxy_addon.origin import Origin
from proxy_addon.ranges import Cut, Wanted
from proxy_addon.refuse import Refusal

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

    __slots__ = ("exchange", "host", "port", "private_allowed")

    def __init__(self, exchange: "Exchange", host: str, port: int, *, private_allowed: bool) -> None:
        self.exchange = exchange
        self.host = host
        self.port = port
        self.private_allowed = private_allowed

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
        "claims",
        "deadline",
        "decoder",
        "ended",
        "failure",
        "form",
        "held",
        "http10",
        "injected",
        "into_body",
        "masker",
        "method",
        "needles",
        "offered",
        "origin",
        "overdue",
        "parts",
        "refusal",
        "replaced",
        "request_bytes",
        "request_id",
        "response_bytes",
        "retried",
        "route_id",
        "secret_id",
        "secret_version",
        "status",
        "target",
        "ticket",
        "upstream_closes",
        "user_agent",
        "wanted",
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
        # Why we answer ourselves, once that is decided; `failure` is what the way to the upstream ran into.
        self.refusal: Refusal | None = None
        self.failure: Refusal | None = None
        self.overdue = False
        self.injected = False
        # What goes into the body; it is let go of once it is there.
        self.into_body: list[Placed] = []
        # Bytes of its bodies that are kept until the exchange is over.
        self.held = 0
        self.needles: Needles = NOTHING
        self.masker: Masker | Cut | None = None
        # Whether the route forwards ranges, and what this request asked for.
        self.parts = False
        self.wanted: Wanted | None = None
        self.decoder: Decoder | None = None
        # Why the answer keeps its head, and gets a body of our own.
        self.replaced: Refusal | None = None
        self.websocket = False
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
        # Headers went to the agent; the connection broke; the audit row is written.
        self.answered = False
        self.abandoned = False
        self.ended = False

    def __repr__(self) -> str:
        return f"Exchange({self.request_id}, {self.method}, {self.status})"

    @property
    def body_wanted(self) -> bool:
        """True if a credential goes into the body, which is held for it."""
        return bool(self.into_body)

    @property
    def seconds(self) -> float:
        """The seconds that it has taken so far."""
        return time.monotonic() - self.began

    def allow(self, seconds: float) -> None:
        """From now on this long until something must happen."""
        self.deadline = time.monotonic() + seconds
