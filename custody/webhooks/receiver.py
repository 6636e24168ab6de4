"""One post to a receiver that somebody else named: only to a judged address, with an end, and little is read.

The name is resolved for each connection (while nobody tells, what it led to lately counts), every answer is judged, and
what is dialled is a judged address, never the name again: a name that leads elsewhere the second time (rebinding) leads
nowhere. The certificate is checked against the name. There are no redirects, no cookies, no proxies of the environment,
and nothing is decompressed, because the library below has none of these.
"""

import asyncio
import re
import ssl
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal

import httpcore
import msgspec

from custody.identity.web_urls import DEFAULT_PORTS, NotWebUrl, WebUrl, read_url
from custody.kit import clock
from custody.kit.addresses import LOOPBACK, refusal
from custody.kit.logs import logger
from custody.kit.resolver import FairResolver, Lookup, system_lookup

log = logger(__name__)
# From the first look for an address to the last header of the answer.
ANSWER_SECONDS = 10.0
# One address that does not answer leaves time for the next.
_CONNECT_SECONDS = 4.0
# A connection is kept for what follows at once; the receiver's own patience is longer than this.
_KEEP_SECONDS = 1.0
# An answer as short as this is read to its end, so that the connection can be kept; a longer one is not read at all.
_SHORT_BODY = 4096
_BODY_SECONDS = 1.0
_SECONDS = re.compile(rb"[0-9]{1,9}\Z")
Problem = Literal["name", "address_blocked", "connect", "tls", "timeout", "closed"]


class Answer(msgspec.Struct, frozen=True):
    """What came of a post: a status, or the problem instead of one. `retry_after` is what the receiver asks for."""

    status: int | None = None
    problem: Problem | None = None
    retry_after: float | None = None


class NotDialled(Exception):
    """No connection is made; `problem` is the short word for why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)


class Outside:
    """The way to all receivers: whom we trust, and which addresses may be dialled."""

    def __init__(
        self,
        *,
        loopback_allowed: bool,
        extra_ca_file: Path | None = None,
        lookup: Lookup = system_lookup,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.loopback_allowed = loopback_allowed
        self.answer_seconds = answer_seconds
        self.names = FairResolver(lookup)
        self.trusted = ssl.create_default_context()
        if extra_ca_file is not None:
            self.trusted.load_verify_locations(extra_ca_file)


class Receiver:
    """The connections to one endpoint; nobody else's requests wait for them."""

    def __init__(self, outside: Outside, tenant: str, most: int) -> None:
        self._outside = outside
        self._connections = httpcore.AsyncConnectionPool(
            ssl_context=outside.trusted,
            max_connections=most,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=_Guarded(outside, tenant),
        )

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send and hear the answer's head; whatever goes wrong is a word."""
        try:
            read = read_url(url)
        except NotWebUrl:
            return Answer(problem="address_blocked")
        if read.scheme != "https" and not self._outside.loopback_allowed:
            return Answer(problem="address_blocked")
        try:
            async with asyncio.timeout(self._outside.answer_seconds):
                return await self._post(read, headers, body)
        except (TimeoutError, httpcore.TimeoutException):
            return Answer(problem="timeout")
        except NotDialled as problem:
            return Answer(problem=problem.problem)
        except httpcore.ConnectError as problem:
            # The library hands on what it met as the argument.
            return Answer(problem="tls" if isinstance(next(iter(problem.args), None), ssl.SSLError) else "connect")
        except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError):
            return Answer(problem="closed")

    async def _post(self, read: WebUrl, headers: dict[str, str], body: bytes) -> Answer:
        # In its parts, for the library would read the text in its own way: without what follows a `;`.
        target = (read.path or "/") + ("" if read.query is None else f"?{read.query}")
        url = httpcore.URL(scheme=read.scheme, host=read.host.strip("[]"), port=read.port, target=target)
        named = [("Host", _authority(read)), *headers.items()]
        async with self._connections.stream("POST", url, headers=named, content=body) as response:
            told = {name.lower(): value for name, value in response.headers}
            await _read_if_short(response, told)
            return Answer(status=response.status, retry_after=_retry_after(told.get(b"retry-after")))

    async def close(self) -> None:
        """Close every connection."""
        await self._connections.aclose()


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
        for address in await self._judged(host.strip("[]"), port):
            try:
                return await self._network.connect_tcp(address, port, _CONNECT_SECONDS, None, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as problem:
                last = problem
        raise last or NotDialled("name")

    async def _judged(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._outside.names.resolve(host, port, self._tenant)
        except (OSError, UnicodeError):
            raise NotDialled("name") from None
        for address in addresses:
            # One bad answer among good ones is an attack or a mistake; neither is worth a guess.
            if reason := refusal(address, LOOPBACK if self._outside.loopback_allowed else frozenset()):
                log.info("a receiver's address is refused", extra={"host": host, "reason": reason})
                raise NotDialled("address_blocked")
        return addresses

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise NotDialled("address_blocked")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _authority(read: WebUrl) -> str:
    return read.host if read.port in (None, DEFAULT_PORTS[read.scheme]) else f"{read.host}:{read.port}"


async def _read_if_short(response: httpcore.Response, told: dict[bytes, bytes]) -> None:
    length = told.get(b"content-length", b"0" if response.status == 204 else b"")
    if _SECONDS.match(length) is None or int(length) > _SHORT_BODY:
        return
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for _ in response.aiter_stream():
                pass
    except (TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        return  # the head was the answer


def _retry_after(said: bytes | None) -> float | None:
    if said is None:
        return None
    if _SECONDS.match(said):
        return float(said)
    try:
        return (parsedate_to_datetime(said.decode("ascii")) - clock.now()).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
