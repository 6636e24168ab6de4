"""The one file that speaks HTTP. What comes back is made harmless, typed, or a failure with a sentence."""

import asyncio
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx
import msgspec

from console.wire.answers import (
    FURTHEST_CLOCK,
    Answer,
    ahead_of,
    convert,
    cursor_of,
    data_of,
    is_least,
    next_offset_of,
    total_of,
)
from console.wire.connections import Connections, is_loopback
from console.wire.credentials import Credential, Session
from console.wire.event_stream import Event, EventReader
from console.wire.failures import AnswerLost, Away, Malformed, Patience, ReadOnly, SignedOut
from console.wire.signing import RequestSigner
from console.wire.tokens import Tokens
from words.texts.moments import local_now

__all__ = ["ApiClient", "Event", "Page", "SignedIn", "new_key"]

MAX_ANSWER_BYTES: Final = 64 * 2**20
# From here on decoding would be felt on the screen; below, handing it to a thread costs more than it saves.
_LARGE_BYTES: Final = 2**16
# What is said to last longer is renewed after a day all the same.
_LONGEST_TOKEN_SECONDS: Final = 86_400
# What a console that only looks may send all the same: to sign in and out, and what is judged without being done.
_SESSION: Final = frozenset({"/auth/device/code", "/auth/device/token", "/auth/logout"})
_ONLY_ASKED: Final = ("/simulate", "/routes/explain")
_CONNECTIONS: Final = httpx.Limits(max_connections=8, max_keepalive_connections=2, keepalive_expiry=30)


@dataclass(frozen=True)
class Page[Item]:
    """Some items of a list, how many there are in all (or at least), and where the next ones begin.

    A list has cursors, or else offsets.
    """

    items: list[Item]
    total: int
    at_least: bool = False
    cursor: str | None = None
    next_offset: int | None = None


class ApiClient:
    """A service at one address, asked with one credential."""

    def __init__(
        self,
        url: str,
        credential: Credential | None = None,
        *,
        read_only: bool = False,
        exact: bool = False,
        patience: Patience | None = None,
    ) -> None:
        self.url = url
        self.credential = credential
        self.read_only = read_only
        # Texts as they were sent, for what shows none of them; sentences of refusals are harmless all the same.
        self.exact = exact
        self.patience = patience or Patience()
        # For deployments that want what changes something to be signed.
        self.signer: RequestSigner | None = None
        # Told after each request whether the service answered (None) or is away.
        self.listener: Callable[[Away | None], None] = lambda away: None
        # Told once if the service's clock is so far off that times are counted by this machine's.
        self.say: Callable[[str], None] = lambda sentence: None
        # When the stream of events sent anything, by the monotonic clock.
        self.stream_heard_at = float("-inf")
        self._ahead = timedelta()
        self._told_of_clock = False
        self._http = httpx.AsyncClient(
            base_url=url,
            limits=_CONNECTIONS,
            follow_redirects=False,
            # A proxy of the environment must not see what is meant for this machine.
            trust_env=not is_loopback(url),
            # Reading the certificates that this machine trusts takes a fifth of a second; without TLS nobody asks them.
            verify=True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # A credential is what says who asks; cookies, which are sent without being asked for, are never kept.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            # Nothing compressed: a kilobyte that becomes a gigabyte would be collected before it could be counted.
            headers={"Accept-Encoding": "identity"},
        )
        self._connections = Connections()
        self._connections.serve(self._http)

    def __repr__(self) -> str:
        return f"ApiClient({self.url})"

    async def close(self) -> None:
        """Let go of the connections, once what must not be left half done is done."""
        if self.credential is not None:
            await self.credential.settle()
        await self._connections.settle()
        await self._http.aclose()

    def now(self) -> datetime:
        """The time as the service has it, to a second: what expires, expires there."""
        return local_now() + self._ahead

    async def get[Shape](self, path: str, shape: type[Shape], **query: Any) -> Shape:
        """Ask for one thing."""
        return (await self._ask("GET", path, shape, query=query))[0]

    async def get_exact[Shape](self, path: str, shape: type[Shape]) -> Shape:
        """Ask for one thing with its texts exactly as they were sent: to compute with, never to be shown."""
        return (await self._ask("GET", path, shape, exact=True))[0]

    async def get_page[Shape](self, path: str, shape: type[Shape], **query: Any) -> Page[Shape]:
        """Ask for some of a list."""
        items, headers = await self._ask("GET", path, list[shape], query=query)  # type: ignore[valid-type]
        total, offset = total_of(headers, len(items)), next_offset_of(headers)
        return Page(items, total, is_least(headers), cursor_of(headers), offset)

    async def send[Shape](
        self, method: str, path: str, shape: type[Shape], body: Any = None, *, key: str | None = None
    ) -> Shape:
        """Change something. Sent again under the same `key`, it happens once; AnswerLost says that this is wise."""
        if self.read_only and path not in _SESSION and not path.endswith(_ONLY_ASKED):
            raise ReadOnly
        headers = {
            "Idempotency-Key": key or new_key(),
            "X-Service-Request-Timestamp": str(int(self.now().timestamp())),
        }
        return (await self._ask(method, path, shape, body={} if body is None else body, headers=headers))[0]

    async def events(self, last_id: str | None = None, *, follow: bool = True) -> AsyncGenerator[Event]:
        """Listen to the tenant's events, from after `last_id` or from now on, until the connection ends.

        The first event, named `open`, only says that the stream is there. Without `follow` it ends with the last event
        that there is.
        """
        credential = self.credential
        if credential is not None:
            await credential.freshen(self._refresh)
        for last_try in (False, True):
            who = _who(credential)
            try:
                # Closed here and not some time later, or the connection would stay open.
                async with aclosing(self._events(last_id, who, follow=follow)) as found:
                    async for event in found:
                        yield event
                    return
            except SignedOut:
                if last_try or credential is None or not await credential.renew(who, self._refresh):
                    raise

    async def step_up(self, method: str, code: str) -> None:
        """Show a second factor (`totp`, `recovery-codes`); the session goes on with the tokens that are answered."""
        await self._advance(f"/auth/mfa/{method}/step-up", code)

    async def confirm_authenticator(self, code: str) -> list[str]:
        """Show the first code of an authenticator, as in `step_up`; gives recovery codes if there were none yet."""
        if self.read_only:
            raise ReadOnly
        return await self._advance("/auth/mfa/totp/verify", code)

    async def _advance(self, path: str, code: str) -> list[str]:
        credential, answers = self.credential, list[SignedIn]()
        if not isinstance(credential, Session):
            return []

        async def ask() -> Tokens:
            answers.append((await self._once(request, SignedIn, _who(credential)))[0])
            return answers[-1].tokens()

        await credential.freshen(self._refresh)
        request, who = _Request("POST", path, {}, {"code": code}, {}), _who(credential)
        try:
            await credential.advance(ask)
        except SignedOut:
            if not await credential.renew(who, self._refresh):
                raise
            await credential.advance(ask)
        return answers[-1].recovery_codes or []

    async def _events(self, last_id: str | None, who: dict[str, str], *, follow: bool) -> AsyncGenerator[Event]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {}) | who
        timeout = httpx.Timeout(self.patience.stream_silence, connect=self.patience.connect)
        reader = EventReader(last_id or "")
        try:
            path = "/events" if follow else "/events?follow=false"
            async with self._http.stream("GET", path, headers=headers, timeout=timeout) as answer:
                if answer.status_code != 200 or not answer.headers.get("Content-Type", "").startswith(
                    "text/event-stream"
                ):
                    data_of(Answer(self.url, answer.status_code, answer.headers, await _content(answer)))
                    raise Malformed(f"{self.url} has no event stream.")
                self.stream_heard_at = time.monotonic()
                yield Event(last_id or "", "open", {})
                async for chunk in answer.aiter_raw():
                    self.stream_heard_at = time.monotonic()
                    for event in reader.feed(chunk):
                        yield event
        except httpx.HTTPError as problem:
            raise Away(f"The event stream from {self.url} broke off ({type(problem).__name__}).") from None

    async def _ask[Shape](  # noqa: PLR0913 - everything that a request is
        self,
        method: str,
        path: str,
        shape: type[Shape],
        *,
        query: Any = None,
        body: Any = None,
        headers: Any = None,
        exact: bool = False,
    ) -> tuple[Shape, Mapping[str, str]]:
        query = {name: value for name, value in (query or {}).items() if value is not None}
        request = _Request(method, path, query, body, headers or {}, exact or self.exact)
        # A retried request keeps its identity, even if another person signs in meanwhile.
        credential = self.credential
        if credential is not None:
            await credential.freshen(self._refresh)
        who = _who(credential)
        try:
            return await self._once(request, shape, who)
        except SignedOut:
            if credential is None or not await credential.renew(who, self._refresh):
                raise
        return await self._once(request, shape, _who(credential))

    async def _once[Shape](
        self, request: "_Request", shape: type[Shape], who: dict[str, str]
    ) -> tuple[Shape, Mapping[str, str]]:
        try:
            answer = await self._answer(request, who)
            found = (
                await asyncio.to_thread(_read, answer, shape)
                if len(answer.content) > _LARGE_BYTES
                else _read(answer, shape)
            )
        except Away as away:
            self.listener(away)
            raise
        except Exception:
            self.listener(None)
            raise
        self.listener(None)
        self._set_clock(ahead_of(answer.headers, local_now()))
        return found, answer.headers

    def _set_clock(self, ahead: timedelta) -> None:
        if abs(ahead) <= FURTHEST_CLOCK:
            self._ahead = ahead
            return
        self._ahead = timedelta()
        if not self._told_of_clock:
            self._told_of_clock = True
            self.say("The service's clock is more than a day off; this console uses the local clock.")

    async def _answer(self, request: "_Request", who: dict[str, str]) -> Answer:
        lost = Away if request.method == "GET" else AnswerLost
        patience = self.patience
        timeout = httpx.Timeout(patience.silence, connect=patience.connect)
        try:
            async with (
                asyncio.timeout(patience.answer),
                self._http.stream(
                    request.method,
                    request.path,
                    params=request.query,
                    content=request.content(),
                    headers=request.headers() | self._signature(request) | who,
                    timeout=timeout,
                ) as answer,
            ):
                content = await _content(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            # Nothing was sent.
            trusted = "CERTIFICATE" not in str(problem)
            raise Away(
                f"{self.url} cannot be reached." if trusted else f"{self.url} has an untrusted certificate."
            ) from None
        except httpx.PoolTimeout:
            raise Away(f"{self.url} has not responded to earlier requests.") from None
        except (httpx.TimeoutException, TimeoutError):
            raise lost(f"{self.url} did not respond in time.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise lost(f"{self.url} broke off the response ({type(problem).__name__}).") from None
        changing = request.method != "GET"
        return Answer(self.url, answer.status_code, answer.headers, content, changing, request.exact)

    def _signature(self, request: "_Request") -> dict[str, str]:
        if self.signer is None or request.method == "GET" or request.path.startswith("/auth/"):
            return {}
        target = httpx.URL(request.path).raw_path.decode()
        return self.signer.headers(request.method, target, request.extra, request.content() or b"")

    async def _refresh(self, refresh_token: str) -> Tokens:
        request = _Request("POST", "/auth/refresh", {}, {"refreshToken": refresh_token}, {})
        return (await self._once(request, SignedIn, {}))[0].tokens()


class _Request(msgspec.Struct, frozen=True):
    """A request; sent twice where a session had to be renewed first."""

    method: str
    path: str
    query: dict[str, Any]
    body: Any
    extra: dict[str, str]
    exact: bool = False

    def content(self) -> bytes | None:
        return None if self.body is None else msgspec.json.encode(self.body)

    def headers(self) -> dict[str, str]:
        return self.extra if self.body is None else {**self.extra, "Content-Type": "application/json"}

    def __repr__(self) -> str:
        return f"_Request({self.method} {self.path})"


class SignedIn(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of a sign-in, a step-up and a refresh."""

    token: str
    refresh_token: str
    expires_in: int
    user: "Named"
    tenant: "Named"
    # With the first of all factors, this once.
    recovery_codes: list[str] | None = None

    def tokens(self) -> Tokens:
        """Return the part that is kept."""
        ends_at = local_now() + timedelta(seconds=min(max(self.expires_in, 0), _LONGEST_TOKEN_SECONDS))
        return Tokens(self.token, self.refresh_token, ends_at, self.user.id, self.tenant.id)

    def __repr__(self) -> str:
        return "SignedIn()"


class Named(msgspec.Struct, frozen=True):
    """A person or a tenant, as a session's answer names it."""

    id: str


def _who(credential: Credential | None) -> dict[str, str]:
    return credential.headers() if credential else {}


def new_key() -> str:
    """A key under which something happens once, however often it is sent."""
    return f"console-{secrets.token_hex(16)}"  # noqa: TID251 - the console imports nothing of Custody


def _read[Shape](answer: Answer, shape: type[Shape]) -> Shape:
    return convert(data_of(answer), shape)


async def _content(answer: httpx.Response) -> bytes:
    """The bytes of an answer as they come, and no more of them than this console reads."""
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Malformed("The response is compressed, which this console did not request.")
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise Malformed("The response is too long for this console.")
    return bytes(content)
