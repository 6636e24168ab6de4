"""A seller of calls by x402, for the walk-through: each payment is on the chain before the answer leaves."""

import base64
from typing import Any, Final

import msgspec
from coincurve import PrivateKey

from custody.chains.evm.address import keccak256
from ops.demo.callers import USDC, Chain
from ops.local_chain import play_usdc
from ops.local_chain.ledger import CHAIN_ID

PRICE: Final = 20_000
_GAS_MONEY: Final = 10**18
_SECONDS: Final = 60
_SETTLE: Final = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"


class Seller:
    """One address that is paid, and a key of its own that pays the network's fee for each settlement."""

    def __init__(self, chain: Chain, address: str) -> None:
        self.address, self._chain = address, chain
        self._key = PrivateKey()

    async def open_shop(self) -> None:
        """Get play money for fees."""
        await self._chain.fund_key(self._key, _GAS_MONEY)

    def demand(self, url: str) -> str:
        """Write what a call costs, as the header `PAYMENT-REQUIRED` has it."""
        offer = {
            "scheme": "exact",
            "network": f"eip155:{CHAIN_ID}",
            "asset": USDC,
            "amount": str(PRICE),
            "payTo": self.address,
            "maxTimeoutSeconds": _SECONDS,
            "extra": {"name": play_usdc.SYMBOL, "version": play_usdc.VERSION},
        }
        resource = {"url": url, "description": "A quote", "mimeType": "application/json"}
        return _encode({"x402Version": 2, "resource": resource, "accepts": [offer]})

    async def settle(self, payment: str) -> str:
        """Take a payment to the chain; `PAYMENT-RESPONSE` once it is in a block. A bad one raises."""
        payload = msgspec.json.decode(base64.b64decode(payment))["payload"]
        given = payload["authorization"]
        if (given["to"].lower(), int(given["value"])) != (self.address, PRICE):
            raise ValueError("another payment")
        words = [int(given["from"], 16), int(given["to"], 16), PRICE]
        words += [int(given["validAfter"]), int(given["validBefore"]), int(given["nonce"], 16)]
        signature = bytes.fromhex(payload["signature"].removeprefix("0x"))
        # The text of seven arguments: the last one stands behind them, its length first.
        data = b"".join(word.to_bytes(32) for word in (*words, 7 * 32, len(signature)))
        padding = bytes(-len(signature) % 32)
        made = await self._chain.call_contract(
            self._key, USDC, keccak256(_SETTLE.encode())[:4] + data + signature + padding
        )
        await self._chain.wait_for_block(made)
        return _encode({"success": True, "transaction": made, "network": f"eip155:{CHAIN_ID}", "payer": given["from"]})


def _encode(said: Any) -> str:
    return base64.b64encode(msgspec.json.encode(said)).decode()
