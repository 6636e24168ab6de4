"""An API that sells its calls by x402, and takes each payment to the chain before it answers."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from eth_abi import encode
from eth_account import Account
from eth_utils import keccak, to_checksum_address

from tests.outside.evm_node import CHAIN_ID, EvmNode

_SETTLE = ("address", "address", "uint256", "uint256", "uint256", "bytes32", "bytes")


class Seller:
    """The price of a call, and who is paid; `settled` are the transactions that it made."""

    def __init__(self, node: EvmNode, token: str, address: str, price: int) -> None:
        self._node, self._token, self._lock = node, token, Lock()
        self._key = Account.create()
        self.address, self.price = address, price
        self.settled: list[str] = []
        self.url = ""

    def demand(self) -> str:
        """Return its demand, as the header carries it."""
        offer = {
            "scheme": "exact",
            "network": f"eip155:{CHAIN_ID}",
            "asset": self._token,
            "amount": str(self.price),
            "payTo": self.address,
            "maxTimeoutSeconds": 60,
            "extra": {"name": "USDC", "version": "2"},
        }
        said = {"x402Version": 2, "resource": {"url": self.url}, "accepts": [offer]}
        return base64.b64encode(json.dumps(said).encode()).decode()

    def settle(self, payment: str) -> bool:
        """Take a payment to the chain; whether the token moved."""
        paid = json.loads(base64.b64decode(payment))["payload"]
        one = paid["authorization"]
        numbers = [int(one[name]) for name in ("value", "validAfter", "validBefore")]
        proof = bytes.fromhex(paid["signature"].removeprefix("0x"))
        words = [one["from"], one["to"], *numbers, bytes.fromhex(one["nonce"].removeprefix("0x")), proof]
        data = keccak(f"transferWithAuthorization({','.join(_SETTLE)})".encode())[:4] + encode(_SETTLE, words)
        with self._lock:
            self._node.fund(self._key.address)
            nonce = int(self._node.rpc("eth_getTransactionCount", self._key.address, "latest"), 16)
            order = {"chainId": CHAIN_ID, "nonce": nonce, "gas": 200_000, "gasPrice": 10**11}
            signed = self._key.sign_transaction(
                {**order, "to": to_checksum_address(self._token), "value": 0, "data": data}
            )
            made = self._node.rpc("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x"))
            moved = int(self._node.rpc("eth_getTransactionReceipt", made)["status"], 16) == 1
            self.settled += [made] if moved else []
        return moved


@contextmanager
def running_seller(node: EvmNode, token: str, address: str, price: int) -> Iterator[Seller]:
    """Sell on a free port of this machine."""
    seller = Seller(node, token, address, price)

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            payment = self.headers.get("PAYMENT-SIGNATURE")
            took = payment is not None and seller.settle(payment)
            body = json.dumps({"quote": "A penny saved."} if took else {}).encode()
            self.send_response(200 if took else 402)
            if not took:
                self.send_header("PAYMENT-REQUIRED", seller.demand())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    seller.url = f"http://127.0.0.1:{server.server_address[1]}/v1/quote"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield seller
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
