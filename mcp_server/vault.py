"""The service over HTTP, as one agent: the only file here that speaks to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

# An order waits for nodes, and the service gives them up after less than this.
_TIMEOUT = httpx.Timeout(60, connect=5)
# The largest answer of the api that a tool reads; a dashboard has some 20 KiB.
MAX_ANSWER_BYTES = 2 << 20
# What a tool reads of a stranger's answer through the proxy: more is cut anyway before a model sees it.
MAX_CALL_BYTES = 256 << 10
# Connections to the service at once: one for each client that may be connected here, so that no agent's calls wait for
# those of another.
MAX_CONNECTIONS = 1024
_MAX_RETRY_SECONDS = 86_400
_AGENT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class NoAnswer(Exception):
    """Nobody knows what became of a request: the connection broke, or what came cannot be read.

    `sent` is False where nothing left: the service could not be reached.
    """

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent

    @classmethod
    def of(cls, problem: Exception) -> "NoAnswer":
        """Say it of a fault of the connection, by its kind alone: its text may name addresses."""
        if isinstance(problem, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            return cls("it cannot be reached", sent=False)
        return cls(type(problem).__name__)


@dataclass(frozen=True)
class Answer:
    """An answer of the service: `data` of a success, or code and sentence of a refusal."""

    status: int
    data: Any
    code: str = ""
    sentence: str = ""
    # Seconds, where it says when to come again.
    retry_after: int | None = None

    @property
    def done(self) -> bool:
        """True if what was asked for was done."""
        return self.status == 200

    def get(self, name: str) -> Any:
        """One field of the data; None where it has none."""
        return self.data.get(name) if isinstance(self.data, dict) else None


@dataclass(frozen=True)
class Called:
    """A stranger's answer through the proxy."""

    status: int
    content_type: str
    body: bytes
    # True if there was more than is read here.
    cut: bool
    # The header `X-Service-Payment`: what was paid for it.
    paid: str | None
    code: str = ""
    sentence: str = ""
    retry_after: int | None = None


class Vault:
    """One agent's way to the service."""

    def __init__(self, client: httpx.AsyncClient, url: str, proxy_url: str, token: str, agent: str) -> None:
        self._client, self._url, self._proxy_url, self._token = client, url, proxy_url, token
        self.agent = agent

    def __repr__(self) -> str:
        """Say whose, and nothing of the token."""
        return f"Vault({self.agent!r})"

    async def get(self, path: str, **query: str | int) -> Answer:
        """Ask; `path` has the agent's id as `{agent}`."""
        return await self._ask("GET", path, params=query)

    async def post(self, path: str, body: object, key: str) -> Answer:
        """Ask for a change under an idempotency key; a connection that breaks is tried once more, as the key allows."""
        try:
            return await self._ask("POST", path, json=body, key=key)
        except NoAnswer:
            return await self._ask("POST", path, json=body, key=key)

    async def simulate(self, body: object) -> Answer:
        """Ask what would happen to an order; nothing is written."""
        return await self._ask("POST", "/vault/{agent}/simulate", json=body)

    async def call(self, host: str, path: str, method: str, body: str | None, key: str) -> Called:
        """Call an API through the proxy's gateway."""
        headers = {"Authorization": f"Bearer {self._token}", "Idempotency-Key": key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        # To the byte as it was written: a client that takes dot segments out of a path would call another host.
        proxy = httpx.URL(self._proxy_url)
        target = proxy.raw_path.rstrip(b"/") + f"/proxy/{host}{path}".encode()
        try:
            async with self._client.stream(
                method,
                proxy,
                headers=headers,
                content=None if body is None else body.encode(),
                extensions={"target": target},
            ) as answer:
                return await _read_call(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise NoAnswer.of(problem) from None

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        json: object = None,
        key: str = "",
    ) -> Answer:
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Idempotency-Key": key} if key else {})
        content = None if json is None else msgspec.json.encode(json)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._client.stream(
                method, self._url + path.replace("{agent}", self.agent), params=params, headers=headers, content=content
            ) as answer:
                return _answer(answer, *await _read(answer, MAX_ANSWER_BYTES))
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise NoAnswer.of(problem) from None


def new_client() -> httpx.AsyncClient:
    """Connections to the service: no redirect is followed, no proxy of the environment asked."""
    return httpx.AsyncClient(
        timeout=_TIMEOUT,
        follow_redirects=False,
        trust_env=False,
        limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
    )


async def whose(client: httpx.AsyncClient, url: str, token: str) -> Answer:
    """Ask whose token it is: `data` is the agent's id."""
    try:
        async with client.stream("GET", f"{url}/me", headers={"Authorization": f"Bearer {token}"}) as answer:
            found = _answer(answer, *await _read(answer, MAX_ANSWER_BYTES))
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise NoAnswer.of(problem) from None
    if not found.done:
        return found
    agent = found.get("agentId")
    if found.get("kind") != "agent_token" or not isinstance(agent, str) or not _AGENT_ID.fullmatch(agent):
        return Answer(403, None, "wrong_kind", "This is not an agent's token.")
    return Answer(200, agent)


async def _read(answer: httpx.Response, most: int) -> tuple[bytes, bool]:
    """Read at most so many bytes, decoded; True if there was more."""
    content = bytearray()
    async for chunk in answer.aiter_bytes():
        content += chunk
        if len(content) > most:
            return bytes(content[:most]), True
    return bytes(content), False


def _answer(answer: httpx.Response, content: bytes, cut: bool) -> Answer:
    if cut:
        raise NoAnswer("an answer that is too long")
    try:
        said = msgspec.json.decode(content)
    except msgspec.DecodeError:
        raise NoAnswer("an answer that is no JSON") from None
    if not isinstance(said, dict):
        raise NoAnswer("an answer without an envelope")
    data, status = said.get("data"), answer.status_code
    if status == 200 and said.get("ok") is True:
        return Answer(200, data)
    code = data.get("code") if isinstance(data, dict) else None
    return Answer(
        status if status != 200 else 502,
        data,
        code if isinstance(code, str) else "internal",
        str(said.get("error") or "")[:2000],
        _retry_after(answer),
    )


async def _read_call(answer: httpx.Response) -> Called:
    content, cut = await _read(answer, MAX_CALL_BYTES)
    # Only the proxy's own refusals carry this header; no header of an upstream begins so.
    code = answer.headers.get("X-Service-Error", "")
    return Called(
        answer.status_code,
        answer.headers.get("Content-Type", "")[:200],
        content,
        cut,
        answer.headers.get("X-Service-Payment"),
        code,
        _sentence(content) if code else "",
        _retry_after(answer),
    )


def _sentence(content: bytes) -> str:
    try:
        said = msgspec.json.decode(content)["error"]["message"]
    except (msgspec.DecodeError, LookupError, TypeError):
        return ""
    return said[:2000] if isinstance(said, str) else ""


def _retry_after(answer: httpx.Response) -> int | None:
    text = answer.headers.get("Retry-After", "")
    return min(int(text), _MAX_RETRY_SECONDS) if text.isascii() and text.isdecimal() and len(text) < 9 else None
