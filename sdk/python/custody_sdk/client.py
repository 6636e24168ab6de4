"""The clients: `Vault` waits for each answer, `AsyncVault` is awaited. Both have the same methods, which say the same.

A client holds a token and shows it to nobody: it is in no repr, no pickle, no log and no exception that it raises.
"""

import asyncio
import base64
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, Self

import httpx

from custody_sdk import _asks as asks
from custody_sdk import _types as types
from custody_sdk._asks import NATIVE, Paid, Signed
from custody_sdk._wire import MAX_ANSWER_BYTES, Answer, Ask, Tries, agent_id, base_of, outcome, read_seconds, token_of
from custody_sdk.errors import BadArgument, VaultError, Waiting

VERSION: Final = "1.0.0"
_LOOKS: Final = (0.5, 0.5, 1.0, 1.0, 2.0, 3.0)


class _Bearer(httpx.Auth):
    """Puts the token into a request at the last moment, and shows it nowhere else."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        self._token = token_of(token)

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def __repr__(self) -> str:
        return "<an agent's token>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token is not pickled: make a client where it is used")


class _Holder:
    """The parts that both clients have."""

    def __init__(self, url: str, token: str, agent: str | None, patience: float, *, allow_http: bool) -> None:
        self.url = base_of(url, allow_http=allow_http)
        self._auth = _Bearer(token)
        self._agent = None if agent is None else agent_id(agent)
        self._patience = patience

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._agent or 'an agent'} at {self.url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a token and is not pickled: make one in each process")

    def _request(self, http: httpx.Client | httpx.AsyncClient, ask: Ask[Any], seconds: float) -> httpx.Request:
        about = {"User-Agent": f"custody-sdk/{VERSION} python"}
        return http.build_request(
            ask.method,
            self.url + ask.path,
            content=ask.content,
            params=dict(ask.query) or None,
            headers=ask.headers | about,
            timeout=seconds,
        )


class _Body:
    """The bytes of one answer, bounded in size and in time."""

    def __init__(self, answer: httpx.Response, seconds: float) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._ends = time.monotonic() + seconds
        self.fault = "The answer is packed, which was not asked for." if "content-encoding" in answer.headers else ""
        self._answer = answer

    def take(self, part: bytes) -> bool:
        """Take a part of it; whether to go on."""
        self._parts.append(part)
        self._size += len(part)
        if self.fault:
            return False
        if self._size > MAX_ANSWER_BYTES:
            self.fault = f"The answer is longer than {MAX_ANSWER_BYTES} bytes."
        elif time.monotonic() > self._ends:
            self.fault = "The answer did not end in time."
        return not self.fault

    def answer(self) -> Answer:
        """Return the whole answer, or that there is none."""
        if self.fault:
            return Answer(0, absent=self.fault)
        after = read_seconds(self._answer.headers.get("Retry-After", ""))
        return Answer(self._answer.status_code, after, b"".join(self._parts))


def _away(failure: str) -> Answer:
    # The failure itself is not kept: it holds the request, and that the token.
    return Answer(0, absent=f"The service did not answer ({failure}).")


def _encode(family: str) -> Any:
    return (lambda raw: "0x" + raw.hex()) if family == "evm" else (lambda raw: base64.b64encode(raw).decode())


def _from_environment() -> tuple[str, str]:
    found = {name: os.environ.get(f"SERVICE_{name}", "") for name in ("URL", "AGENT_TOKEN", "AGENT_TOKEN_FILE")}
    if not found["AGENT_TOKEN"] and found["AGENT_TOKEN_FILE"]:
        with open(found["AGENT_TOKEN_FILE"], encoding="ascii") as file:
            found["AGENT_TOKEN"] = file.read(10_000)
    if not found["URL"] or not found["AGENT_TOKEN"]:
        raise BadArgument(0, "no_settings", "set SERVICE_URL, and SERVICE_AGENT_TOKEN_FILE or SERVICE_AGENT_TOKEN.")
    return found["URL"], found["AGENT_TOKEN"]


class Vault(_Holder):
    """An agent's wallet, by its token."""

    def __init__(  # noqa: PLR0913  all but two have defaults, and go by name
        self,
        url: str,
        token: str,
        *,
        agent: str | None = None,
        patience: float = 30.0,
        timeout: float = 60.0,
        http: httpx.Client | None = None,
        allow_http: bool = False,
    ) -> None:
        """Make a client.

        `patience` is for how many seconds a request is repeated where that is safe, `timeout` how long one may take.
        `http` is a client of your own, for a proxy or certificates; settings of the environment are not looked at.
        """
        super().__init__(url, token, agent, patience, allow_http=allow_http)
        self._timeout, self._own = timeout, http is None
        self._http = http or httpx.Client(trust_env=False)

    @classmethod
    def from_environment(cls, **given: Any) -> Self:
        """Make one of SERVICE_URL and SERVICE_AGENT_TOKEN_FILE (or SERVICE_AGENT_TOKEN), as `custody run` sets them."""
        return cls(*_from_environment(), **given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are of a client of your own."""
        if self._own:
            self._http.close()

    @property
    def agent(self) -> str:
        """The agent's id: the service says it, once."""
        if self._agent is None:
            self._agent = agent_id(self.me()["agentId"] or "")
        return self._agent

    # ---- orders; each under a name of yours for THIS one: repeated under the same name within a day, it is made once

    def pay(
        self,
        name: str,
        to: str,
        amount: int | str,
        asset: str = NATIVE,
        *,
        chain_id: int | None = None,
        wait: float = 0,
    ) -> Signed:
        """Pay on an EVM chain, in smallest units. Raises Refused, and Waiting where nobody decided within `wait`."""
        return self._or_wait(asks.evm(self.agent, name, asks.transfer(to, amount, asset, chain_id)), wait)

    def send(self, name: str, order: types.EvmOrder, *, wait: float = 0) -> Signed:
        """Sign an EVM transaction, and send it unless `broadcast` is false; leave nonce and fees to the service."""
        return self._or_wait(asks.evm(self.agent, name, order), wait)

    def sign_typed_data(self, name: str, document: Mapping[str, Any], *, wait: float = 0) -> Signed:
        """Sign an EIP-712 document: `domain`, `types`, `primaryType`, `message`."""
        return self._or_wait(asks.typed_data(self.agent, name, document), wait)

    def sign_message(self, name: str, message: str | bytes, family: str = "evm", *, wait: float = 0) -> Signed:
        """Sign a message as wallets do, by the wallet of a family: `evm` or `solana`."""
        return self._or_wait(asks.message(self.agent, name, message, family=family, encode=_encode(family)), wait)

    def sign_solana(self, name: str, order: types.SolanaOrder, *, wait: float = 0) -> Signed:
        """Sign a Solana transaction; `custody_sdk.solana` makes the order of a transaction."""
        return self._or_wait(asks.solana(self.agent, name, order), wait)

    def sign_psbt(self, name: str, order: types.PsbtOrder) -> types.PsbtSigned:
        """Sign a PSBT."""
        return self._call(asks.psbt(self.agent, name, order))

    def pay_demand(
        self, name: str, demand: Mapping[str, Any] | str, *, resource: str | None = None, wait: float = 0
    ) -> Paid:
        """Pay what a server or a tool demands by x402; send your request again with `headers` of the answer."""
        ask = asks.demand(self.agent, name, demand, resource)
        try:
            return self._call(ask)
        except Waiting as waiting:
            if not wait:
                raise
            tx_id = waiting.tx_id
        self.wait(tx_id, wait)
        # The key tells what became of it.
        return self._call(ask)

    def withdraw(self, tx_id: str) -> types.Withdrawn:
        """Take back an order of this agent that waits for a person."""
        return self._call(asks.withdrawal(self.agent, tx_id))

    # ---- what became of them

    def resume(self, tx_id: str) -> Signed:
        """Return what an order came to, as the first call would have, or raise as it would: Waiting, Refused."""
        return asks.what_became_of(self.transaction(tx_id))

    def wait(self, tx_id: str, seconds: float = 300) -> Signed:
        """Wait for a person. Waiting when the time is over: wait again, or tell the user, and never pay again."""
        ends = time.monotonic() + seconds
        for pause in _pauses():
            try:
                return self.resume(tx_id)
            except Waiting:
                if time.monotonic() + pause > ends:
                    raise
            time.sleep(pause)
        raise AssertionError

    def confirm(self, tx_id: str, seconds: float = 300) -> types.Transaction:
        """Wait for the chain, and for a person before it. Failed where the chain did not execute it."""
        ends = time.monotonic() + seconds
        for pause in _pauses():
            found = self.transaction(tx_id)
            waiting = found["status"] == "pending_approval"
            if (not waiting and asks.is_settled(found)) or time.monotonic() + pause > ends:
                return _in_the_end(found)
            time.sleep(pause)
        raise AssertionError

    def check(self, to: str, amount: int | str, asset: str = NATIVE, *, chain_id: int | None = None) -> types.Simulated:
        """Tell what would become of a payment now. Nothing is signed or reserved."""
        return self.simulate("evm", asks.transfer(to, amount, asset, chain_id))

    def simulate(self, kind: str, request: Mapping[str, Any]) -> types.Simulated:
        """Tell what would become of an order now: `evm`, `typed_data`, `message`, `solana`, `transfer`, `bitcoin`."""
        return self._call(asks.simulation(self.agent, kind, request))

    def transaction(self, tx_id: str) -> types.Transaction:
        """Return a transaction."""
        return self._call(asks.transaction(self.agent, tx_id))

    def find(self, name: str) -> list[types.ListedTransaction]:
        """Return the transactions with a name, newest first, however old they are."""
        return self._call(asks.by_name(self.agent, name))

    def receipt(self, tx_id: str) -> types.Receipt:
        """Return the receipt of what was signed; `verify_receipt` checks one."""
        return self._call(asks.receipt(self.agent, tx_id))

    # ---- whose token it is, and what it may do

    def me(self) -> types.Me:
        """Tell whose token it is, and until when."""
        return self._call(asks.me())

    def wallet(self) -> types.Agent:
        """Return the agent and its addresses."""
        return self._call(asks.wallet(self.agent))

    def balance(self, chain_id: int | None = None) -> types.AgentBalance:
        """Return the wallet's coins on a chain."""
        return self._call(asks.balance(self.agent, chain_id))

    def tokens(self, chain_id: int | None = None) -> types.AgentTokens:
        """Return the wallet's tokens on a chain."""
        return self._call(asks.tokens(self.agent, chain_id))

    def apis(self) -> list[types.CallableApi]:
        """Return the APIs that may be called through the proxy."""
        return self._call(asks.apis(self.agent))

    def dashboard(self) -> types.Dashboard:
        """Return what is left of each limit, and what waits."""
        return self._call(asks.dashboard(self.agent))

    # ---- how a request is made

    def _or_wait(self, ask: Ask[Signed], wait: float) -> Signed:
        try:
            return self._call(ask)
        except Waiting as waiting:
            if not wait:
                raise
            tx_id = waiting.tx_id
        return self.wait(tx_id, wait)

    def _call[T](self, ask: Ask[T]) -> T:
        tries = Tries(self._patience)
        while True:
            answer = self._once(ask)
            pause = tries.pause(ask, answer)
            if pause is None:
                return outcome(ask, answer)
            time.sleep(pause)

    def _once(self, ask: Ask[Any]) -> Answer:
        request = self._request(self._http, ask, self._timeout)
        try:
            answer = self._http.send(request, auth=self._auth, stream=True, follow_redirects=False)
            try:
                body = _Body(answer, self._timeout)
                for part in answer.iter_raw():
                    if not body.take(part):
                        break
            finally:
                answer.close()
        except httpx.HTTPError as failure:
            said = type(failure).__name__
        else:
            return body.answer()
        return _away(said)


class AsyncVault(_Holder):
    """An agent's wallet, by its token, for programs that await. The methods are those of `Vault`."""

    def __init__(  # noqa: PLR0913  all but two have defaults, and go by name
        self,
        url: str,
        token: str,
        *,
        agent: str | None = None,
        patience: float = 30.0,
        timeout: float = 60.0,
        http: httpx.AsyncClient | None = None,
        allow_http: bool = False,
    ) -> None:
        """Make a client; see `Vault`."""
        super().__init__(url, token, agent, patience, allow_http=allow_http)
        self._timeout, self._own = timeout, http is None
        self._http = http or httpx.AsyncClient(trust_env=False)

    @classmethod
    def from_environment(cls, **given: Any) -> Self:
        """Make one of SERVICE_URL and SERVICE_AGENT_TOKEN_FILE (or SERVICE_AGENT_TOKEN), as `custody run` sets them."""
        return cls(*_from_environment(), **given)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they are of a client of your own."""
        if self._own:
            await self._http.aclose()

    async def agent(self) -> str:
        """Return the agent's id: the service says it, once."""
        if self._agent is None:
            self._agent = agent_id((await self.me())["agentId"] or "")
        return self._agent

    # ---- orders; each under a name of yours for THIS one: repeated under the same name within a day, it is made once

    async def pay(
        self,
        name: str,
        to: str,
        amount: int | str,
        asset: str = NATIVE,
        *,
        chain_id: int | None = None,
        wait: float = 0,
    ) -> Signed:
        """Pay on an EVM chain, in smallest units. Raises Refused, and Waiting where nobody decided within `wait`."""
        return await self._or_wait(asks.evm(await self.agent(), name, asks.transfer(to, amount, asset, chain_id)), wait)

    async def send(self, name: str, order: types.EvmOrder, *, wait: float = 0) -> Signed:
        """Sign an EVM transaction, and send it unless `broadcast` is false; leave nonce and fees to the service."""
        return await self._or_wait(asks.evm(await self.agent(), name, order), wait)

    async def sign_typed_data(self, name: str, document: Mapping[str, Any], *, wait: float = 0) -> Signed:
        """Sign an EIP-712 document: `domain`, `types`, `primaryType`, `message`."""
        return await self._or_wait(asks.typed_data(await self.agent(), name, document), wait)

    async def sign_message(self, name: str, message: str | bytes, family: str = "evm", *, wait: float = 0) -> Signed:
        """Sign a message as wallets do, by the wallet of a family: `evm` or `solana`."""
        ask = asks.message(await self.agent(), name, message, family=family, encode=_encode(family))
        return await self._or_wait(ask, wait)

    async def sign_solana(self, name: str, order: types.SolanaOrder, *, wait: float = 0) -> Signed:
        """Sign a Solana transaction; `custody_sdk.solana` makes the order of a transaction."""
        return await self._or_wait(asks.solana(await self.agent(), name, order), wait)

    async def sign_psbt(self, name: str, order: types.PsbtOrder) -> types.PsbtSigned:
        """Sign a PSBT."""
        return await self._call(asks.psbt(await self.agent(), name, order))

    async def pay_demand(
        self, name: str, demand: Mapping[str, Any] | str, *, resource: str | None = None, wait: float = 0
    ) -> Paid:
        """Pay what a server or a tool demands by x402; send your request again with `headers` of the answer."""
        ask = asks.demand(await self.agent(), name, demand, resource)
        try:
            return await self._call(ask)
        except Waiting as waiting:
            if not wait:
                raise
            tx_id = waiting.tx_id
        await self.wait(tx_id, wait)
        # The key tells what became of it.
        return await self._call(ask)

    async def withdraw(self, tx_id: str) -> types.Withdrawn:
        """Take back an order of this agent that waits for a person."""
        return await self._call(asks.withdrawal(await self.agent(), tx_id))

    # ---- what became of them

    async def resume(self, tx_id: str) -> Signed:
        """Return what an order came to, as the first call would have, or raise as it would: Waiting, Refused."""
        return asks.what_became_of(await self.transaction(tx_id))

    async def wait(self, tx_id: str, seconds: float = 300) -> Signed:
        """Wait for a person. Waiting when the time is over: wait again, or tell the user, and never pay again."""
        ends = time.monotonic() + seconds
        for pause in _pauses():
            try:
                return await self.resume(tx_id)
            except Waiting:
                if time.monotonic() + pause > ends:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError

    async def confirm(self, tx_id: str, seconds: float = 300) -> types.Transaction:
        """Wait for the chain, and for a person before it. Failed where the chain did not execute it."""
        ends = time.monotonic() + seconds
        for pause in _pauses():
            found = await self.transaction(tx_id)
            waiting = found["status"] == "pending_approval"
            if (not waiting and asks.is_settled(found)) or time.monotonic() + pause > ends:
                return _in_the_end(found)
            await asyncio.sleep(pause)
        raise AssertionError

    async def check(
        self, to: str, amount: int | str, asset: str = NATIVE, *, chain_id: int | None = None
    ) -> types.Simulated:
        """Tell what would become of a payment now. Nothing is signed or reserved."""
        return await self.simulate("evm", asks.transfer(to, amount, asset, chain_id))

    async def simulate(self, kind: str, request: Mapping[str, Any]) -> types.Simulated:
        """Tell what would become of an order now: `evm`, `typed_data`, `message`, `solana`, `transfer`, `bitcoin`."""
        return await self._call(asks.simulation(await self.agent(), kind, request))

    async def transaction(self, tx_id: str) -> types.Transaction:
        """Return a transaction."""
        return await self._call(asks.transaction(await self.agent(), tx_id))

    async def find(self, name: str) -> list[types.ListedTransaction]:
        """Return the transactions with a name, newest first, however old they are."""
        return await self._call(asks.by_name(await self.agent(), name))

    async def receipt(self, tx_id: str) -> types.Receipt:
        """Return the receipt of what was signed; `verify_receipt` checks one."""
        return await self._call(asks.receipt(await self.agent(), tx_id))

    # ---- whose token it is, and what it may do

    async def me(self) -> types.Me:
        """Tell whose token it is, and until when."""
        return await self._call(asks.me())

    async def wallet(self) -> types.Agent:
        """Return the agent and its addresses."""
        return await self._call(asks.wallet(await self.agent()))

    async def balance(self, chain_id: int | None = None) -> types.AgentBalance:
        """Return the wallet's coins on a chain."""
        return await self._call(asks.balance(await self.agent(), chain_id))

    async def tokens(self, chain_id: int | None = None) -> types.AgentTokens:
        """Return the wallet's tokens on a chain."""
        return await self._call(asks.tokens(await self.agent(), chain_id))

    async def apis(self) -> list[types.CallableApi]:
        """Return the APIs that may be called through the proxy."""
        return await self._call(asks.apis(await self.agent()))

    async def dashboard(self) -> types.Dashboard:
        """Return what is left of each limit, and what waits."""
        return await self._call(asks.dashboard(await self.agent()))

    # ---- how a request is made

    async def _or_wait(self, ask: Ask[Signed], wait: float) -> Signed:
        try:
            return await self._call(ask)
        except Waiting as waiting:
            if not wait:
                raise
            tx_id = waiting.tx_id
        return await self.wait(tx_id, wait)

    async def _call[T](self, ask: Ask[T]) -> T:
        tries = Tries(self._patience)
        while True:
            answer = await self._once(ask)
            pause = tries.pause(ask, answer)
            if pause is None:
                return outcome(ask, answer)
            await asyncio.sleep(pause)

    async def _once(self, ask: Ask[Any]) -> Answer:
        request = self._request(self._http, ask, self._timeout)
        try:
            answer = await self._http.send(request, auth=self._auth, stream=True, follow_redirects=False)
            try:
                body = _Body(answer, self._timeout)
                async for part in answer.aiter_raw():
                    if not body.take(part):
                        break
            finally:
                await answer.aclose()
        except httpx.HTTPError as failure:
            said = type(failure).__name__
        else:
            return body.answer()
        return _away(said)


def _pauses() -> Iterator[float]:
    """Yield the seconds between two looks, longer and longer."""
    yield from _LOOKS
    while True:
        yield _LOOKS[-1]


def _in_the_end(found: types.Transaction) -> types.Transaction:
    """Return what is settled, and raise for what still is not when the time is over."""
    if found["status"] != "confirmed":
        asks.what_became_of(found)
        raise VaultError(200, "not_confirmed_yet", f"It is {found['status']}; look again later.", {"txId": found["id"]})
    return found
