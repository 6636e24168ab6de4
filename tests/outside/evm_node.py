"""A real EVM node: anvil where `npm ci` in tests/judges put it, otherwise our own local chain."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from eth_abi import encode
from eth_account import Account
from eth_utils import to_checksum_address

from tests.outside import loopback, npm
from tests.outside.processes import PROJECT, READY, running

CHAIN_ID = 31337
_JUDGES = PROJECT / "tests/judges"
ERC20 = json.loads((PROJECT / "tests/vectors/erc20.json").read_text())
_DEPLOYER = Account.from_key(b"\x0d" * 32)
CALLER = _DEPLOYER.address
_TRANSFER = "a9059cbb"
# EIP-1559 takes an eighth off after an empty block, in whole wei: of seven an eighth is none.
_LEAST_BASE_FEE = 7
_MINED_SECONDS = 60


class EvmNode:
    """A node and what only tests may do with it."""

    def __init__(self, kind: str, url: str, http: httpx.Client) -> None:
        self.kind, self.url = kind, url
        self._http = http

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method; an error of the node is an error of the test."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._http.post(self.url, json=request).json()
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def fund(self, address: str, wei: int = 10**18) -> None:
        """Give an address money."""
        if self.kind == "anvil":
            balance = int(self.rpc("eth_getBalance", address, "latest"), 16)
            self.rpc("anvil_setBalance", address, hex(balance + wei))
        else:
            self.rpc("dev_fund", address, hex(wei))

    def mine(self, blocks: int = 1) -> None:
        """Add blocks; the first has what waits."""
        for _ in range(blocks):
            self.rpc("evm_mine")

    def sink_fees(self) -> None:
        """Mine empty blocks until gas is as cheap as it can be: what came before no longer shows in a price."""
        while int(self.rpc("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16) > _LEAST_BASE_FEE:
            self.mine(10)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Nothing is mined inside but by `mine`."""
        self.rpc("evm_setAutomine", False)
        try:
            yield
        finally:
            self.rpc("evm_setAutomine", True)

    def drop(self, tx_hash: str) -> None:
        """Forget a transaction that waits."""
        assert self.rpc("anvil_dropTransaction", tx_hash) == tx_hash

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """A reorganization: at the end the chain is what it was before, as if nothing of this had been mined."""
        moment = self.rpc("evm_snapshot")
        yield
        assert self.rpc("evm_revert", moment)

    def waits(self, tx_hash: str) -> bool:
        """Tell whether a transaction is there and in no block."""
        found = self.rpc("eth_getTransactionByHash", tx_hash)
        return found is not None and found["blockNumber"] is None

    def receipt(self, tx_hash: str) -> Any:
        """Return a transaction's receipt, once it is mined: a node may answer before it has mined."""
        deadline = time.monotonic() + _MINED_SECONDS
        while (receipt := self.rpc("eth_getTransactionReceipt", tx_hash)) is None:
            assert time.monotonic() < deadline, "not mined"
        return receipt

    def sent_from(self, address: str) -> int:
        """Count an address's transactions that the node has, mined or not."""
        return int(self.rpc("eth_getTransactionCount", address, "pending"), 16)

    def deploy_erc20(self, holder: str, *, symbol: str = "USDX", decimals: int = 6, supply: int = 10**12) -> str:
        """Deploy a token whose whole supply belongs to `holder`; give its address."""
        self.fund(_DEPLOYER.address)
        arguments = encode(["string", "uint8", "uint256"], [symbol, decimals, supply])
        token = self._send(ERC20["bytecode"] + arguments.hex())["contractAddress"]
        self._send(
            "0x" + _TRANSFER + encode(["address", "uint256"], [holder, supply]).hex(), to=to_checksum_address(token)
        )
        return token

    def deploy(self, runtime: bytes) -> str:
        """Deploy a contract whose code is these bytes, at most 255; give its address in EIP-55."""
        self.fund(_DEPLOYER.address)
        return to_checksum_address(self._send("0x" + creation_code(runtime).hex())["contractAddress"])

    def call_contract(self, to: str, data: bytes) -> str:
        """Call a contract in a transaction of `CALLER`; give its hash."""
        self.fund(CALLER)
        return str(self._send("0x" + data.hex(), to=to)["transactionHash"])

    def _send(self, data: str, **to: str) -> Any:
        nonce = int(self.rpc("eth_getTransactionCount", _DEPLOYER.address, "latest"), 16)
        transaction = {
            "type": 2,
            "chainId": CHAIN_ID,
            "nonce": nonce,
            "value": 0,
            "gas": 2_000_000,
            "data": data,
            "maxFeePerGas": 10**11,
            "maxPriorityFeePerGas": 10**9,
            **to,
        }
        signed = Account.sign_transaction(transaction, _DEPLOYER.key)
        receipt = self.receipt(self.rpc("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex()))
        assert receipt["status"] == "0x1"
        return receipt


def creation_code(runtime: bytes) -> bytes:
    """The code that leaves these bytes, at most 255, as a contract."""
    size = len(runtime)
    # Copies what follows these twelve bytes into memory and returns it.
    return bytes((0x60, size, 0x60, 12, 0x60, 0, 0x39, 0x60, size, 0x60, 0, 0xF3)) + runtime


@contextmanager
def running_evm_node(kind: str | None = None) -> Iterator[EvmNode]:
    """Start a node on a free port: `anvil`, `py-evm`, `permit2` (our own with Permit2), or the best there is."""
    anvil = find_anvil()
    kind = kind or ("anvil" if anvil else "py-evm")
    own = [sys.executable, "-m", "tests.outside.permit2_chain" if kind == "permit2" else "ops.local_chain"]
    command = [*([anvil] if kind == "anvil" else own), "--port", "0"]
    with running(command) as address, loopback.client(timeout=20) as http:
        node = EvmNode(kind, f"http://{address}", http)
        assert int(node.rpc("eth_chainId"), 16) == CHAIN_ID
        yield node


def find_anvil() -> Path | None:
    """The binary itself: npm's wrapper would not pass our end on to it. None while another worker is installing it."""
    if not npm.is_installed(_JUDGES):
        return None
    return next((_JUDGES / "node_modules/@foundry-rs").glob("anvil-*/bin/anvil"), None)


if __name__ == "__main__":
    with running_evm_node() as started:
        print(f"{started.kind} {READY}{started.url.removeprefix('http://')}", flush=True)
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
