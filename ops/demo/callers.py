"""The two things the walk-through talks to: the API with one credential, and the chain's node."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec
from coincurve import PrivateKey

from custody.chains.evm import transaction
from custody.chains.evm.address import address_of
from custody.chains.evm.transaction import EvmTransaction
from ops.local_chain.ledger import CHAIN_ID

# The play USDC of the local chain, as its table of chains names it.
USDC = "0x" + "05dc" * 10
_MINED_WITHIN_SECONDS = 10.0
_GAS = 200_000


class DemoFailed(RuntimeError):
    """Something answered other than it should."""


class Answer(msgspec.Struct, frozen=True):
    """The answer of the API."""

    status: int
    data: Any
    error: str | None

    def __repr__(self) -> str:
        return "Answer()"


class Api:
    """The API as one caller sees it."""

    def __init__(self, client: httpx.AsyncClient, url: str, credential: Mapping[str, str]) -> None:
        self._client, self._url, self._credential = client, url, credential

    def with_token(self, token: str) -> "Api":
        """The same API for an agent."""
        return Api(self._client, self._url, {"Authorization": f"Bearer {token}"})

    def with_nothing(self) -> "Api":
        """The same API without a credential."""
        return Api(self._client, self._url, {})

    def with_platform_key(self, key: str) -> "Api":
        """The same API for the operator."""
        return Api(self._client, self._url, {"X-Service-Platform-Key": key})

    async def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask, whatever comes back; a body in bytes is JSON already."""
        content = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        sent = {"Content-Type": "application/json"} if content is not None else {}
        sent |= {**self._credential, **(headers or {})}
        answer = await self._client.request(method, self._url + path, content=content, headers=sent)
        try:
            said = msgspec.json.decode(answer.content)
            return Answer(answer.status_code, said.get("data"), said.get("error"))
        except (msgspec.MsgspecError, AttributeError):
            raise DemoFailed(f"{method} {path} answered {answer.status_code}: {answer.text[:200]!r}") from None

    async def get(self, path: str) -> Any:
        """Ask for something that must be there."""
        return _expect(await self.ask("GET", path), "GET", path)

    async def do(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """Do something that must succeed, or must end with this very status."""
        return _expect(await self.ask(method, path, body), method, path, status)


def _expect(answer: Answer, method: str, path: str, status: int | None = None) -> Any:
    wrong = answer.status != status if status is not None else answer.error is not None or answer.status >= 300
    if wrong:
        raise DemoFailed(f"{method} {path} answered {answer.status}: {answer.error or answer.data}")
    return answer.data


class Chain:
    """The local chain, for what only the chain can say."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url

    async def balance(self, address: str) -> int:
        """Read what an address holds, in wei."""
        return int(await self._call("eth_getBalance", address, "latest"), 16)

    async def fund(self, address: str, wei: int) -> None:
        """Give an address play money."""
        await self._call("dev_fund", address, hex(wei))

    async def fund_usdc(self, address: str, units: int) -> None:
        """Give an address play USDC."""
        await self._call("dev_fund", address, hex(units), "USDC")

    async def usdc(self, address: str) -> int:
        """Read what an address holds of it, in its smallest units."""
        call = {"to": USDC, "data": "0x70a08231" + address.removeprefix("0x").rjust(64, "0")}
        return int(await self._call("eth_call", call, "latest"), 16)

    async def fund_key(self, key: PrivateKey, wei: int) -> None:
        """Give the address of a key play money."""
        await self.fund(_address(key), wei)

    async def call_contract(self, key: PrivateKey, contract: str, data: bytes) -> str:
        """Sign a call with a key that is here, send it, and give its hash."""
        nonce = int(await self._call("eth_getTransactionCount", _address(key), "pending"), 16)
        price = int(await self._call("eth_gasPrice"), 16)
        call = EvmTransaction(CHAIN_ID, nonce, _GAS, 2 * price, price // 2, contract, 0, data)
        signed = transaction.sign(call, key)
        await self._call("eth_sendRawTransaction", "0x" + signed.raw.hex())
        return signed.hash

    async def wait_for_block(self, tx_hash: str) -> int:
        """The number of the block a transaction was mined in and succeeded."""
        deadline = asyncio.get_running_loop().time() + _MINED_WITHIN_SECONDS
        while (receipt := await self._call("eth_getTransactionReceipt", tx_hash)) is None:
            if asyncio.get_running_loop().time() > deadline:
                raise DemoFailed(f"{tx_hash} was not mined within {_MINED_WITHIN_SECONDS:.0f} s")
            await asyncio.sleep(0.05)
        if int(receipt["status"], 16) != 1:
            raise DemoFailed(f"{tx_hash} failed on the chain")
        return int(receipt["blockNumber"], 16)

    async def _call(self, method: str, *parameters: object) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        said = msgspec.json.decode((await self._client.post(self._url, json=request)).content)
        if "error" in said:
            raise DemoFailed(f"the chain refused {method}: {said['error'].get('message')}")
        return said["result"]


def _address(key: PrivateKey) -> str:
    return address_of(key.public_key.format(compressed=False))
