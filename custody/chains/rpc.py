"""JSON-RPC to blockchain nodes, none of which is trusted.

An address of a node often carries a key, so only its host is ever shown; what a node says is cut and cleaned before
it reaches an error.
"""

import asyncio
import copy
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import msgspec

from custody.chains.node_shares import NodeShare
from custody.chains.orders import Prepared
from custody.kit import turns
from custody.kit.errors import UpstreamFailed

CONNECT_SECONDS, READ_SECONDS = 2.0, 10.0
# What `brief` waits for, all nodes of a chain together.
BRIEF_SECONDS = 1.5
# For what somebody looks at, so that orders never wait behind it: theirs are httpx' usual hundred.
LOOKING_CONNECTIONS = 48
# So long `brief` leaves a node out that did not answer in time.
SILENT_SECONDS = 10.0
# Work that callers choose, which can take a healthy node long: it is no evidence of silence, or one tenant's token
# could hide a node from all others.
_HEAVY = frozenset({"eth_call", "eth_estimateGas", "getTokenAccountsByOwner", "simulateTransaction"})
MAX_RESPONSE_BYTES = 1024 * 1024
MAX_MESSAGE = 300
METHOD_NOT_FOUND = -32601
# Questions in one request of `each`; many nodes take a hundred.
EACH_BATCH = 50

# At its usual level httpx logs every address, path and key included.
logging.getLogger("httpx").setLevel(logging.WARNING)  # noqa: TID251 - not a logger of ours

Query = tuple[str, list[Any]]


class RpcUnavailable(UpstreamFailed):
    """No node of this chain could be reached."""


class RpcNonsense(RpcUnavailable):
    """The node's response cannot be parsed."""


class RpcSilent(RpcUnavailable):
    """The node did not answer in time."""


class RpcRefused(UpstreamFailed):
    """The node refused the request."""

    def __init__(self, message: str | None = None, *, rpc_code: int = 0, data: object = None) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.data = data


class BroadcastRefused(UpstreamFailed):
    """The node did not accept the transaction."""


class NotExecutable(UpstreamFailed):
    """The transaction would fail as it stands. `prepared` is what the node knows all the same."""

    prepared: Prepared | None = None


class InsufficientFunds(NotExecutable):
    """The wallet does not have the funds for this transaction."""


class _Failure(msgspec.Struct):
    code: int = 0
    message: str = ""
    data: Any = None


class _Response(msgspec.Struct):
    id: int | str | None = None
    result: Any = None
    error: _Failure | None = None


_DECODER = msgspec.json.Decoder(_Response | list[_Response])


class Rpc:
    """Connections to nodes; one per process. Addresses are tried in order until one can be reached.

    Orders have connections of their own, beside those for what somebody looks at. With a share, questions count for the
    person whose tenant asks, and only some of one person are under way at once.
    """

    def __init__(self, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS) -> None:
        timeout = httpx.Timeout(read_seconds, connect=connect_seconds, pool=connect_seconds)
        # The certificates that both trust are read once.
        verify = httpx.create_ssl_context(trust_env=False)
        self._http = httpx.AsyncClient(verify=verify, timeout=timeout, follow_redirects=False, trust_env=False)
        few = httpx.Limits(max_connections=LOOKING_CONNECTIONS, max_keepalive_connections=LOOKING_CONNECTIONS)
        self._looking_http = httpx.AsyncClient(
            verify=verify, timeout=timeout, follow_redirects=False, trust_env=False, limits=few
        )
        self._count: Callable[[int], None] = lambda _questions: None
        self._turn: Callable[[str], AbstractAsyncContextManager[object]] = lambda _url: nullcontext()
        self._total_seconds = connect_seconds + read_seconds
        self._ids = itertools.count(1)
        self._is_brief = False
        # Until when each node counts as silent, on the loop's clock. Addresses come from settings, so they are few.
        self._silent: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()
        await self._looking_http.aclose()

    def preparing(self, share: NodeShare) -> "Rpc":
        """The same for what an order needs to know. Every question may raise NodeCallsSpent."""
        mine = copy.copy(self)
        mine._count, mine._turn = share.spend_order, share.order_turn
        return mine

    def sending(self, share: NodeShare) -> "Rpc":
        """The same for what was signed: that is counted, and sent whatever was asked before."""
        mine = copy.copy(self)
        mine._count, mine._turn = share.count_order, share.order_turn
        return mine

    def looking(self, share: NodeShare, *, paid: bool = False) -> "Rpc":
        """The same for what somebody looks at, on connections apart.

        Every question may raise NodeCallsSpent, if it was not `paid` before.
        """
        mine = self.apart
        mine._count, mine._turn = (self._count if paid else share.spend_look), share.look_turn
        return mine

    @property
    def apart(self) -> "Rpc":
        """The same on the connections that no order uses."""
        mine = copy.copy(self)
        mine._http = self._looking_http
        return mine

    @property
    def brief(self) -> "Rpc":
        """The same for somebody who waits for it: for 1.5 s at most, and silent nodes are left out for 10 s.

        What is prepared or sent asks them all the same, for its own longer time; the first answer ends the silence.
        """
        brief = copy.copy(self)
        brief._total_seconds, brief._is_brief = min(BRIEF_SECONDS, self._total_seconds), True
        return brief

    async def call(self, urls: Sequence[str], method: str, params: list[Any]) -> Any:
        """Ask one thing; give the result, or raise RpcUnavailable or RpcRefused."""
        [answer] = await self.batch(urls, [(method, params)])
        if isinstance(answer, RpcRefused):
            raise answer
        return answer

    async def batch(self, urls: Sequence[str], queries: Sequence[Query]) -> list[Any]:
        """Ask several things in one request; each place holds its result or the RpcRefused it met."""
        self._count(len(queries))
        last = RpcUnavailable("No node address is configured for this chain.")
        now = asyncio.get_running_loop().time
        ordered = sorted(urls, key=lambda url: self._silent.get(url, 0.0) > now())
        end = now() + self._total_seconds
        for place, url in enumerate(ordered):
            try:
                if not self._is_brief:
                    return await self._ask(url, queries, self._total_seconds)
                if self._silent.get(url, 0.0) > now():
                    last = _unavailable(url, f"did not answer lately and is asked again within {SILENT_SECONDS:.0f} s")
                    continue
                seconds = max(0.0, end - now()) / (len(ordered) - place)
                if url in self._silent:
                    # One asks whether it is back, and the others do not wait for that.
                    self._silent[url] = now() + seconds
                return await self._ask(url, queries, seconds)
            except RpcUnavailable as problem:
                last = problem
        raise last

    async def each(self, urls: Sequence[str], queries: Sequence[Query]) -> list[Any]:
        """Ask many unrelated things; each place holds its result or what was wrong with this one alone.

        One answer that is too long or makes no sense spoils its batch, and some nodes take no batches or only small
        ones. So what comes back spoiled is asked again in halves. Raises RpcUnavailable if no node can be reached.
        """
        answers: list[Any] = []
        for begin in range(0, len(queries), EACH_BATCH):
            answers += await self._ask_by_halves(urls, queries[begin : begin + EACH_BATCH])
        return answers

    async def _ask_by_halves(self, urls: Sequence[str], queries: Sequence[Query]) -> list[Any]:
        try:
            answers = await self.batch(urls, queries)
        except RpcNonsense as problem:
            answers = [problem] * len(queries)
        # The same object everywhere is one answer to the whole batch.
        if len(queries) < 2 or any(answer is not answers[0] or not _is_failure(answer) for answer in answers):
            return answers
        middle = len(queries) // 2
        return [*await self._ask_by_halves(urls, queries[:middle]), *await self._ask_by_halves(urls, queries[middle:])]

    async def _ask(self, url: str, queries: Sequence[Query], seconds: float) -> list[Any]:
        ids = [next(self._ids) for _ in queries]
        requests = [
            {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
            for id_, (method, params) in zip(ids, queries, strict=True)
        ]
        # A single question is not wrapped: some nodes take no batches.
        content = msgspec.json.encode(requests if len(requests) > 1 else requests[0])
        try:
            async with turns.aside():
                body = await self._post(url, content, seconds)
        except RpcSilent:
            if all(method not in _HEAVY for method, _ in queries):
                self._silent[url] = asyncio.get_running_loop().time() + SILENT_SECONDS
            raise
        self._silent.pop(url, None)
        try:
            decoded = _DECODER.decode(body)
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise _unavailable(url, "gave a response that is not JSON-RPC", RpcNonsense) from problem
        found = {one.id: one for one in (decoded if isinstance(decoded, list) else [decoded])}
        # Without an id the node did not get as far as our questions.
        if None in found and (refusal := found[None].error):
            return [_refusal(refusal)] * len(ids)
        if any(id_ not in found for id_ in ids):
            raise _unavailable(url, "left a request unanswered", RpcNonsense)
        return [_refusal(one.error) if one.error else one.result for one in map(found.__getitem__, ids)]

    async def _post(self, url: str, content: bytes, seconds: float) -> bytes:
        headers = {"content-type": "application/json"}
        began = asyncio.get_running_loop().time()
        waited: float | None = None

        async def on_connection(_event: str, _about: Mapping[str, Any]) -> None:
            nonlocal waited
            # The first event comes when it is our turn and one of our connections is free.
            waited = asyncio.get_running_loop().time() - began if waited is None else waited

        try:
            # The reading limit alone would let a node drip its answer for ever.
            async with (
                asyncio.timeout(seconds),
                self._turn(url),
                self._http.stream(
                    "POST", url, content=content, headers=headers, extensions={"trace": on_connection}
                ) as response,
            ):
                body = await _read(url, response)
        except (TimeoutError, httpx.TimeoutException):
            if waited is None or waited > seconds / 2:
                # Our own connections were in use for most of the time, which says nothing about the node.
                raise _unavailable(url, "could not be asked in time") from None
            raise _unavailable(url, "did not answer in time", RpcSilent) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            # The cause may quote the whole address; it stays behind.
            raise _unavailable(url, "could not be reached") from None
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise _unavailable(url, f"responded with status {response.status_code}")
        return body


async def _read(url: str, response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise _unavailable(url, "gave a response that is too long", RpcNonsense)
    return bytes(body)


def clean(text: str) -> str:
    """Cut what a node said to a length, without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_MESSAGE]).strip()


def _refusal(failure: _Failure) -> RpcRefused:
    return RpcRefused(clean(failure.message) or "no reason given", rpc_code=failure.code, data=failure.data)


def _is_failure(answer: Any) -> bool:
    return isinstance(answer, RpcRefused | RpcNonsense)


def _unavailable(url: str, what: str, kind: type[RpcUnavailable] = RpcUnavailable) -> RpcUnavailable:
    try:
        host = urlsplit(url).hostname or "?"
    except ValueError:
        host = "?"
    return kind(f"The node at {host} {what}.", code="rpc_unavailable")
