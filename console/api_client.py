"""The one file that speaks HTTP. What comes back is made harmless, typed, or a failure with a sentence."""

import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
import msgspec

from console.credentials import Credential, Session
from console.failures import AnswerLost, Away, Malformed, ReadOnly, SignedOut, answered
from console.moments import local_now
from console.plain import clipped, harmless
from console.settings import is_loopback
from console.tokens import Tokens

# Signing may wait for a node; everything else answers in a fraction of this.
READ_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
# The stream sends something every 15 seconds; silence beyond this is a dead connection.
STREAM_SILENCE_SECONDS: Final = 40.0
MAX_ANSWER_BYTES: Final = 64 * 2**20
_SENTENCE_CHARACTERS: Final = 500


@dataclass(frozen=True)
class Page[Item]:
    """Some items of a list, and how many there are in all."""

    items: list[Item]
    total: int


@dataclass(frozen=True)
class Event:
    """One event of the tenant's stream."""

    id: str
    name: str
    data: dict[str, Any]


class ApiClient:
    """A service at one address, asked with one credential."""

    def __init__(
        self, url: str, credential: Credential | None = None, *, read_only: bool = False,
        read_seconds: float = READ_SECONDS,
    ) -> None:  # fmt: skip
        self.url = url
        self.credential = credential
        self.read_only = read_only
        # Told after each request whether the service answered (None) or is away.
        self.listener: Callable[[Away | None], None] = lambda away: None
        self._ahead = timedelta()
        timeout = httpx.Timeout(read_seconds, connect=min(CONNECT_SECONDS, read_seconds))
        # A proxy of the environment must not see what is meant for this machine.
        self._http = httpx.AsyncClient(base_url=url, timeout=timeout, trust_env=not is_loopback(url))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    def now(self) -> datetime:
        """The time as the service has it, to a second: what expires, expires there."""
        return local_now() + self._ahead

    async def get[Shape](self, path: str, shape: type[Shape], **query: Any) -> Shape:
        """Ask for one thing."""
        return _typed((await self._asked("GET", path, query=query))[0], shape)

    async def get_page[Shape](self, path: str, shape: type[Shape], **query: Any) -> Page[Shape]:
        """Ask for some of a list."""
        data, headers = await self._asked("GET", path, query=query)
        items = _typed(data, list[shape])  # type: ignore[valid-type]
        total = headers.get("X-Total-Count", "")
        return Page(items, int(total) if total.isdecimal() else len(items))

    async def send[Shape](
        self, method: str, path: str, shape: type[Shape], body: Any = None, *, key: str | None = None
    ) -> Shape:
        """Change something. Sent again under the same `key`, it happens once; AnswerLost says that this is wise."""
        if self.read_only and not (path.startswith("/auth/") or path.endswith(("/simulate", "/routes/explain"))):
            raise ReadOnly
        headers = {
            "Idempotency-Key": key or new_key(), "X-Service-Request-Timestamp": str(int(self.now().timestamp())),
        }  # fmt: skip
        data, _ = await self._asked(method, path, body={} if body is None else body, headers=headers)
        return _typed(data, shape)

    async def events(self, last_id: str | None = None) -> AsyncIterator[Event]:
        """Listen to the tenant's events, from after `last_id` or from now on, until the connection ends.

        The first event, named `open`, only says that the stream is there.
        """
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        timeout = httpx.Timeout(STREAM_SILENCE_SECONDS, connect=CONNECT_SECONDS)
        try:
            async with self._http.stream("GET", "/events", headers=headers | self._who(), timeout=timeout) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._data(answer)
                yield Event(last_id or "", "open", {})
                async for event in _parsed(answer):
                    yield event
        except httpx.HTTPError as problem:
            raise Away(f"The stream of events from {self.url} broke off ({type(problem).__name__}).") from None

    async def take_session(self, answer: "SignedIn") -> None:
        """Go on with the session of a sign-in or a step-up."""
        if isinstance(self.credential, Session):
            await self.credential.take(answer.tokens())

    async def _asked(
        self, method: str, path: str, *, query: Any = None, body: Any = None, headers: Any = None
    ) -> tuple[Any, httpx.Headers]:
        query = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            return await self._once(method, path, query, body, headers or {})
        except SignedOut:
            credential = self.credential
            if credential is None or path == "/auth/refresh" or not await credential.renew(self._refreshed):
                raise
        return await self._once(method, path, query, body, headers or {})

    async def _once(self, method: str, path: str, query: Any, body: Any, headers: Any) -> tuple[Any, httpx.Headers]:
        content = None if body is None else msgspec.json.encode(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._http.request(
                method, path, params=query, content=content, headers={**headers, **kind, **self._who()}
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise self._heard(Away(f"{self.url} cannot be reached.")) from None
        except httpx.TimeoutException:
            raise self._heard(_lost(method)(f"{self.url} did not answer in time.")) from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            name = type(problem).__name__
            raise self._heard(_lost(method)(f"{self.url} broke off the answer ({name}).")) from None
        self.listener(None)
        self._look_at_clock(answer)
        return self._data(answer), answer.headers

    def _data(self, answer: httpx.Response) -> Any:
        if len(answer.content) > MAX_ANSWER_BYTES:
            raise Malformed(f"{self.url} answered more than this console reads.")
        try:
            envelope = harmless(msgspec.json.decode(answer.content))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            envelope = None
        if not isinstance(envelope, dict) or not isinstance(envelope.get("ok"), bool):
            if answer.status_code >= 500:
                raise answered(answer.status_code, f"{self.url} answered {answer.status_code}.", {})
            raise Malformed(f"{self.url} answered {answer.status_code} with something that is not of this service.")
        if answer.is_success and envelope["ok"]:
            return envelope.get("data")
        data = envelope.get("data")
        sentence = clipped(
            str(envelope.get("error") or f"The service answered {answer.status_code}."), _SENTENCE_CHARACTERS
        )
        wait = answer.headers.get("Retry-After", "")
        # RFC 8628 has its code where others have a sentence.
        data = data if isinstance(data, dict) else {}
        extra = {name: value for name, value in envelope.items() if name not in ("ok", "data")}
        raise answered(
            answer.status_code, sentence, extra | data, retry_after=int(wait) if wait.isdecimal() else 1,
            request_id=clipped(harmless(answer.headers.get("X-Request-Id", "")), 128),
        )  # fmt: skip

    async def _refreshed(self, refresh_token: str) -> Tokens:
        answer, _ = await self._once("POST", "/auth/refresh", {}, {"refreshToken": refresh_token}, {})
        return _typed(answer, SignedIn).tokens()

    def _heard(self, away: Away) -> Away:
        self.listener(away)
        return away

    def _who(self) -> dict[str, str]:
        return self.credential.headers() if self.credential else {}

    def _look_at_clock(self, answer: httpx.Response) -> None:
        try:
            theirs = parsedate_to_datetime(answer.headers["Date"]).astimezone(UTC)
        except (KeyError, ValueError, TypeError):
            return
        ahead = theirs - local_now()
        # The header has whole seconds; a smaller difference than that is none.
        self._ahead = ahead if abs(ahead) > timedelta(seconds=2) else timedelta()


class SignedIn(msgspec.Struct, frozen=True, rename="camel"):
    """What a sign-in, a step-up and a refresh answer."""

    token: str
    refresh_token: str

    def tokens(self) -> Tokens:
        """What is kept of it."""
        return Tokens(self.token, self.refresh_token)

    def __repr__(self) -> str:
        return "SignedIn()"


def new_key() -> str:
    """A key under which something happens once, however often it is sent."""
    return f"console-{secrets.token_hex(16)}"  # noqa: TID251 - the console imports none of ours


def _typed[Shape](data: Any, shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(data, shape)
    except msgspec.ValidationError as problem:
        raise Malformed(f"The service answered something that this console does not understand ({problem}).") from None


def _lost(method: str) -> type[Away]:
    return Away if method == "GET" else AnswerLost


async def _parsed(answer: httpx.Response) -> AsyncIterator[Event]:
    """Server-sent events as the WHATWG reads them, as far as the service sends them."""
    last_id, name, lines = "", "message", list[str]()
    async for line in answer.aiter_lines():
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            last_id = value if field == "id" else last_id
            name = value if field == "event" else name
            if field == "data":
                lines.append(value)
            continue
        if lines:
            try:
                data = harmless(msgspec.json.decode("\n".join(lines)))
            except msgspec.DecodeError:
                data = None
            yield Event(last_id, harmless(name), data if isinstance(data, dict) else {})
        elif last_id:
            yield Event(last_id, "place", {})
        name, lines = "message", []
