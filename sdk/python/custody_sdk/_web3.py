"""The sender of web3.py: what `vault_middleware` injects."""

from collections.abc import Callable
from typing import Any

from web3.middleware import Web3Middleware

from custody_sdk import eth
from custody_sdk.client import AsyncVault, Vault
from custody_sdk.errors import BadArgument


class Sender(Web3Middleware):  # type: ignore[misc]  # web3 is not installed where types are checked
    """Hands `eth_sendTransaction` to the vault, and everything else to the node but what would need a key."""

    def __init__(self, w3: Any, *, vault: Vault | AsyncVault, wait: float) -> None:
        super().__init__(w3)
        self._vault, self._wait = vault, wait

    def wrap_make_request(self, make_request: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
        """Answer for the vault, or ask the node."""
        if not isinstance(vault := self._vault, Vault):
            raise BadArgument(0, "bad_vault", "Web3 wants a Vault, AsyncWeb3 an AsyncVault.")

        def request(method: str, params: Any) -> Any:
            if method == "eth_accounts":
                return answer([vault.wallet()["walletAddresses"]["evm"]])
            if method == "eth_sendTransaction":
                name, order = eth.order_to_send(params, vault.wallet()["walletAddresses"]["evm"])
                return answer(vault.send(name, order, wait=self._wait).tx_hash)
            eth.refuse_keys(method)
            return make_request(method, params)

        return request

    async def async_wrap_make_request(self, make_request: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
        """Answer for the vault, or ask the node."""
        if not isinstance(vault := self._vault, AsyncVault):
            raise BadArgument(0, "bad_vault", "Web3 wants a Vault, AsyncWeb3 an AsyncVault.")

        async def request(method: str, params: Any) -> Any:
            if method == "eth_accounts":
                return answer([(await vault.wallet())["walletAddresses"]["evm"]])
            if method == "eth_sendTransaction":
                name, order = eth.order_to_send(params, (await vault.wallet())["walletAddresses"]["evm"])
                return answer((await vault.send(name, order, wait=self._wait)).tx_hash)
            eth.refuse_keys(method)
            return await make_request(method, params)

        return request

    def request_processor(self, method: str, params: Any) -> Any:
        """Refuse a payment inside a batch, which goes to the node as a whole."""
        if method == "eth_sendTransaction":
            raise BadArgument(0, "unsupported", "eth_sendTransaction in a batch is not supported: send one by one.")
        eth.refuse_keys(method)
        return method, params

    async def async_request_processor(self, method: str, params: Any) -> Any:
        """Refuse a payment inside a batch, which goes to the node as a whole."""
        return self.request_processor(method, params)


def answer(result: Any) -> dict[str, Any]:
    """Return an answer as a node gives it."""
    return {"jsonrpc": "2.0", "id": 0, "result": result}
