"""The JSON-RPC methods of the local chain, as wallets and libraries call them."""

from collections.abc import Mapping
from typing import Any

from eth.exceptions import Revert, VMError

from ops.local_chain import play_usdc, views
from ops.local_chain.json_rpc import Method, RpcFailure
from ops.local_chain.ledger import BLOCK_GAS, CHAIN_ID, NOBODY, TIP
from ops.local_chain.node import Node
from ops.local_chain.views import hex_of

CLIENT = "custody-local-chain/1 (py-evm)"
REVERTED = 3


class Methods:
    """Reads JSON, asks the node, writes JSON. Nothing is decided here."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._ledger = node.ledger

    def table(self) -> Mapping[str, Method]:
        """Every method by its name."""
        return {
            "web3_clientVersion": lambda: CLIENT,
            "net_version": lambda: str(CHAIN_ID),
            "eth_chainId": lambda: hex(CHAIN_ID),
            "eth_blockNumber": lambda: hex(self._ledger.height),
            "eth_gasPrice": lambda: hex(self._ledger.next_base_fee() + TIP),
            "eth_maxPriorityFeePerGas": lambda: hex(TIP),
            "eth_feeHistory": self._fee_history,
            "eth_getBalance": lambda who, at="latest": hex(self._state(at).get_balance(_bytes(who))),
            "eth_getCode": lambda who, at="latest": hex_of(self._state(at).get_code(_bytes(who))),
            "eth_getTransactionCount": self._count,
            "eth_call": self._call,
            "eth_estimateGas": self._estimate,
            "eth_sendRawTransaction": lambda raw: hex_of(self._node.send(_bytes(raw))),
            "eth_getTransactionByHash": self._transaction,
            "eth_getTransactionReceipt": self._receipt,
            "eth_getBlockByNumber": self._block,
            "eth_getLogs": self._logs,
            "evm_mine": self._mine,
            "evm_setAutomine": self._set_automine,
            "evm_snapshot": lambda: hex(self._node.snapshot()),
            "evm_revert": lambda number: self._node.revert(int(number, 16)),
            "anvil_dropTransaction": lambda hash_: hash_ if self._node.drop(_bytes(hash_)) else None,
            "dev_fund": self._fund,
        }

    def _number(self, at: str) -> int:
        if at in ("latest", "pending", "safe", "finalized"):
            return self._ledger.height
        number = 0 if at == "earliest" else int(at, 16)
        if number > self._ledger.height:
            raise RpcFailure("block not found")
        return number

    def _state(self, at: str) -> Any:
        return self._ledger.state(self._number(at))

    def _count(self, who: str, at: str = "latest") -> str:
        if at == "pending":
            return hex(self._node.pending_nonce(_bytes(who)))
        return hex(self._state(at).get_nonce(_bytes(who)))

    def _call(self, asked: Mapping[str, str], at: str = "latest", *_: object) -> str:
        gas = int(asked.get("gas", hex(BLOCK_GAS)), 16)
        try:
            return hex_of(self._ledger.call(*_order(asked), gas, self._number(at)))
        except VMError as problem:
            raise _failure(problem) from problem

    def _estimate(self, asked: Mapping[str, str], *_: object) -> str:
        sender, to, value, data = _order(asked)
        if self._ledger.state().get_balance(sender) < value:
            raise RpcFailure("insufficient funds for transfer")
        try:
            return hex(self._ledger.estimate(sender, to, value, data))
        except VMError as problem:
            raise _failure(problem) from problem

    def _transaction(self, hash_: str) -> dict[str, Any] | None:
        if mined := self._ledger.mined.get(_bytes(hash_)):
            return views.transaction(mined.transaction, mined)
        waiting = self._node.find_waiting(_bytes(hash_))
        return views.transaction(waiting, None) if waiting is not None else None

    def _receipt(self, hash_: str) -> dict[str, Any] | None:
        mined = self._ledger.mined.get(_bytes(hash_))
        if mined is None:
            return None
        return views.receipt(mined)

    def _block(self, at: str, full: bool = False) -> dict[str, Any] | None:
        try:
            number = self._number(at)
        except RpcFailure:
            return None
        header = self._ledger.header(number)
        hash_ = self._ledger.in_block.get(number)
        hashes = [hex_of(hash_)] if hash_ else []
        return views.block(header, [self._transaction(one) for one in hashes] if full else hashes)

    def _logs(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Those of some blocks, by contracts and by topics: at each place one, any of several, or any at all."""
        first, last = (self._number(wanted.get(name, "latest")) for name in ("fromBlock", "toBlock"))
        contracts = [one.lower() for one in _several(wanted.get("address"))]
        topics = [[one.lower() for one in _several(place)] for place in wanted.get("topics", [])]
        return [
            log
            for number in range(first, last + 1)
            if (hash_ := self._ledger.in_block.get(number)) is not None
            for log in views.receipt(self._ledger.mined[hash_])["logs"]
            if not contracts or log["address"] in contracts
            if len(log["topics"]) >= len(topics)
            if all(not any_of or has in any_of for any_of, has in zip(topics, log["topics"], strict=False))
        ]

    def _fee_history(self, count: str | int, newest: str, percentiles: list[float] | None = None) -> dict[str, Any]:
        last = self._number(newest)
        first = max(0, last + 1 - (count if isinstance(count, int) else int(count, 16)))
        headers = [self._ledger.header(number) for number in range(first, last + 1)]
        following = self._ledger.header(last + 1).base_fee_per_gas if last < self._ledger.height else None
        return {
            "oldestBlock": hex(first),
            "baseFeePerGas": [
                *(hex(header.base_fee_per_gas) for header in headers),
                hex(following or self._ledger.next_base_fee()),
            ],
            "gasUsedRatio": [header.gas_used / header.gas_limit for header in headers],
            "reward": [[hex(TIP)] * len(percentiles or []) for _ in headers],
        }

    def _mine(self, *_: object) -> str:
        self._node.mine()
        return "0x0"

    def _set_automine(self, wanted: bool) -> None:
        self._node.automine = bool(wanted)

    def _fund(self, who: str, amount: str | int, what: str = "ETH") -> str:
        give = {"ETH": self._node.fund, play_usdc.SYMBOL: self._node.fund_usdc}[what]
        return hex_of(give(_bytes(who), amount if isinstance(amount, int) else int(amount, 0)))


def _order(asked: Mapping[str, str]) -> tuple[bytes, bytes, int, bytes]:
    sender, to = asked.get("from"), asked.get("to")
    data = asked.get("input") or asked.get("data") or "0x"
    return _bytes(sender) if sender else NOBODY, _bytes(to or "0x"), int(asked.get("value", "0x0"), 16), _bytes(data)


def _several(given: str | list[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else given


def _failure(problem: VMError) -> RpcFailure:
    if not isinstance(problem, Revert):
        return RpcFailure(f"execution failed: {problem or type(problem).__name__}")
    data = bytes(problem.args[0]) if problem.args and isinstance(problem.args[0], bytes) else b""
    return RpcFailure("execution reverted", REVERTED, hex_of(data))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
