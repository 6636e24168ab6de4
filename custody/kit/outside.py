"""Requests to addresses that somebody else names: only judged addresses are dialled, with a deadline for the whole.

The name is resolved for each connection (while nobody tells, what it led to lately counts), every answer is judged, and
what is dialled is a judged address, never the name again: a name that leads elsewhere the second time (rebinding) leads
nowhere. The certificate is checked against the name. There are no redirects, no cookies, no proxies of the environment,
and nothing is decompressed, because the library below has none of these.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import httpcore
import msgspec

from custody.kit.addresses import LOOPBACK, PRIVATE, Reason, refusal
from custody.kit.fair_slots import Bounds, FairSlots
from custody.kit.logs import logger
from custody.kit.resolver import FairResolver, Lookup, system_lookup
from custody.kit.web_urls import DEFAULT_PORTS, NotWebUrl, WebUrl, read_url

log = logger(__name__)
# From the first look for an address to the end of the answer.
ANSWER_SECONDS = 10.0
# One address that does not answer leaves time for the next.
_CONNECT_SECONDS = 4.0
# Fetches at once in one process: of all, of one tenant, and those that are kept back for tenants with few.
FETCHES, FETCHES_OF_TENANT, FETCHES_KEPT_BACK = 200, 20, 50
_FEW = 5
_FETCHES_BOUNDS = Bounds(FETCHES, FETCHES_OF_TENANT, FETCHES_OF_TENANT, FETCHES_KEPT_BACK, _FEW)
Problem = Literal["name", "address_blocked", "connect", "tls", "timeout", "closed", "too_large", "encoded", "busy"]


class NoAnswer(Exception):
    """No answer came, or none that is read; `problem` is the short word for why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)


class Outside:
    """The way to everybody else: whom we trust, and which addresses may be dialled."""

    def __init__(
        self,
        *,
        loopback_allowed: bool,
        extra_ca_file: Path | None = None,
        private_allowed: Callable[[str, int, str], bool] | None = None,
        lookup: Lookup = system_lookup,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.loopback_allowed = loopback_allowed
        # The hosts, ports and addresses that the operator lets be private.
        self._private_allowed = private_allowed
        self.answer_seconds = answer_seconds
        self.names = FairResolver(lookup)
        self.trusted = ssl.create_default_context()
        if extra_ca_file is not None:
            self.trusted.load_verify_locations(extra_ca_file)

    def exceptions(self, host: str, port: int, address: str) -> frozenset[Reason]:
        """Name the kinds of address that this host may have beside public ones, asked about this one."""
        if self._private_allowed is not None and self._private_allowed(host, port, address):
            return PRIVATE
        return LOOPBACK if self.loopback_allowed else frozenset()


class Connections:
    """Connections for one tenant; requests by others do not wait for them."""

    def __init__(self, outside: Outside, tenant: str, most: int, keep_seconds: float) -> None:
        self._outside = outside
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=outside.trusted,
            max_connections=most,
            keepalive_expiry=keep_seconds,
            network_backend=_Guarded(outside, tenant),
        )

    async def ask[T](
        self,
        method: Literal["GET", "POST"],
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        read: Callable[[httpcore.Response], Awaitable[T]],
    ) -> T:
        """Send, and give what `read` makes of the answer before the deadline; NoAnswer for whatever goes wrong."""
        parsed = self._read(url)
        # In its parts, for the library would read the text in its own way: without what follows a `;`.
        target = (parsed.path or "/") + ("" if parsed.query is None else f"?{parsed.query}")
        where = httpcore.URL(scheme=parsed.scheme, host=parsed.host.strip("[]"), port=parsed.port, target=target)
        named = [("Host", _authority(parsed)), *headers.items()]
        try:
            async with (
                asyncio.timeout(self._outside.answer_seconds),
                self._pool.stream(method, where, headers=named, content=body or None) as response,
            ):
                return await read(response)
        except (TimeoutError, httpcore.TimeoutException):
            raise NoAnswer("timeout") from None
        except httpcore.ConnectError as problem:
            # The library hands on what it met as the argument.
            tls = isinstance(next(iter(problem.args), None), ssl.SSLError)
            raise NoAnswer("tls" if tls else "connect") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError):
            raise NoAnswer("closed") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    def _read(self, url: str) -> WebUrl:
        try:
            read = read_url(url)
        except NotWebUrl:
            raise NoAnswer("address_blocked") from None
        if read.scheme != "https" and not self._outside.loopback_allowed:
            raise NoAnswer("address_blocked")
        return read


class Fetched(msgspec.Struct, frozen=True):
    """A whole answer; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Fetched({self.status})"


class Fetcher:
    """Asks for whole, short answers, each over a connection of its own. NoAnswer where there is none.

    An answer in any content encoding is refused, so nothing small becomes large. Status and type are for the asker to
    look at: a redirect is an answer with a status of 3xx.
    """

    def __init__(self, outside: Outside, bounds: Bounds = _FETCHES_BOUNDS) -> None:
        self._outside = outside
        self._slots = FairSlots(bounds)

    async def get(self, url: str, *, tenant: str, most_bytes: int, headers: Mapping[str, str] | None = None) -> Fetched:
        """GET on a tenant's behalf."""
        return await self._fetch("GET", url, (tenant, None), headers or {}, b"", most_bytes)

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        tenant: str,
        most_bytes: int,
        headers: Mapping[str, str],
        agent: str | None = None,
    ) -> Fetched:
        """POST on a tenant's behalf, or on that of one of its agents."""
        return await self._fetch("POST", url, (tenant, agent), headers, body, most_bytes)

    async def _fetch(
        self,
        method: Literal["GET", "POST"],
        url: str,
        who: tuple[str, str | None],
        headers: Mapping[str, str],
        body: bytes,
        most_bytes: int,
    ) -> Fetched:
        tenant, _ = who
        if self._slots.take(who) is not None:
            raise NoAnswer("busy")
        connections = Connections(self._outside, tenant, most=1, keep_seconds=0)
        sent = {"Accept-Encoding": "identity", **headers}
        try:
            return await connections.ask(method, url, sent, body, lambda response: _whole(response, most_bytes))
        finally:
            self._slots.give_back(who)
            await connections.close()


class _Guarded(httpcore.AsyncNetworkBackend):
    """Dials for one tenant, and nothing but judged addresses."""

    def __init__(self, outside: Outside, tenant: str) -> None:
        self._outside = outside
        self._tenant = tenant
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        last: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in await self._judge(host.strip("[]"), port):
            try:
                return await self._network.connect_tcp(address, port, _CONNECT_SECONDS, None, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as problem:
                last = problem
        raise last or NoAnswer("name")

    async def _judge(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._outside.names.resolve(host, port, self._tenant)
        except (OSError, UnicodeError):
            raise NoAnswer("name") from None
        for address in addresses:
            # One bad answer among good ones is an attack or a mistake; neither is worth a guess.
            if reason := refusal(address, self._outside.exceptions(host, port, address)):
                log.info("an address outside is refused", extra={"host": host, "reason": reason})
                raise NoAnswer("address_blocked")
        return addresses

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise NoAnswer("address_blocked")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _authority(read: WebUrl) -> str:
    return read.host if read.port in (None, DEFAULT_PORTS[read.scheme]) else f"{read.host}:{read.port}"


async def _whole(response: httpcore.Response, most_bytes: int) -> Fetched:
    headers: dict[str, str] = {}
    for name, value in response.headers:
        told = name.decode("latin-1").lower()
        headers[told] = f"{headers[told]}, {value.decode('latin-1')}" if told in headers else value.decode("latin-1")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise NoAnswer("encoded")
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > len(str(most_bytes)) or int(length) > most_bytes):
        raise NoAnswer("too_large")
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_stream():
        size += len(part)
        if size > most_bytes:
            raise NoAnswer("too_large")
        parts.append(part)
    return Fetched(response.status, headers, b"".join(parts))
