"""The questions to an EVM node before and after signing.

Nothing here is trusted: the signer caps every figure, and an order is judged without them.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from custody.chains.evm.action_orders import CallsPrepared
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.chains.evm.revert import reason_of
from custody.chains.family import Chain
from custody.chains.rpc import (
    METHOD_NOT_FOUND,
    BroadcastRefused,
    InsufficientFunds,
    NotExecutable,
    Rpc,
    RpcRefused,
    RpcUnavailable,
)
from custody.chains.units import Unit
from custody.kit.errors import UpstreamFailed
from custody.kit.shapes import MAX_UINT256

PLAIN_TRANSFER_GAS = 21_000
NEEDS_SENDER = True
# The chain that `custody up` brings, in memory; other test nodes use the same id.
_LOCAL_CHAIN_ID = 31337
_LARGEST = 2**63 - 1
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


class EstimateFailed(NotExecutable):
    """The node expects this transaction to fail."""


class Receipt(msgspec.Struct, frozen=True):
    """The block that a transaction was mined in, and whether it did what it should."""

    block_number: int
    block_hash: str
    succeeded: bool
    gas_used: int
    effective_gas_price: int
    # What the sender paid in wei, on a rollup with its part of the chain below; None where the node does not say.
    fee: int | None


class _Figures(msgspec.Struct, frozen=True):
    """One batch of answers, understood."""

    nonce: int
    balance: int
    fees: tuple[int, int, bool]
    estimate: int | RpcRefused


async def prepare(rpc: Rpc, chain: Chain, sender: str, order: EvmOrder) -> EvmPrepared:
    """Ask for nonce, gas and fees of an order; raise InsufficientFunds or EstimateFailed if it cannot work."""
    value = int(order.value)
    data = "0x" + (order.data or "").removeprefix("0x")
    figures = await _ask(rpc, chain, {"from": sender, "to": order.to, "value": hex(value), "data": data})
    max_fee, priority_fee, legacy = figures.fees
    above_base = int(order.max_priority_fee_per_gas or priority_fee)
    chosen = max_fee if legacy else max_fee - priority_fee + above_base
    price = int(order.max_fee_per_gas) if order.max_fee_per_gas else min(chosen, chain.max_fee_per_gas)
    try:
        gas = _gas(chain, figures, order, sender, value)
        _check_funds(sender, chain, figures.balance, value + gas * price)
    except NotExecutable as problem:
        gas = int(order.gas_limit or chain.default_gas)
        problem.prepared = _clamp(figures.nonce, gas, max_fee, priority_fee, legacy=legacy)
        raise
    return _clamp(figures.nonce, gas, max_fee, priority_fee, legacy=legacy)


async def prepare_batch(rpc: Rpc, chain: Chain, sender: str, orders: Sequence[EvmOrder]) -> CallsPrepared:
    """Ask for nonce and fees once, and for the gas of each call by itself.

    A call that needs an earlier one of the batch fails by itself: the node knows no gas for it, and it gets what its
    caller gave, or the chain's usual gas. Raise InsufficientFunds if the wallet cannot pay all of them.
    """
    asked = [
        {"from": sender, "to": one.to, "value": hex(int(one.value)), "data": "0x" + (one.data or "").removeprefix("0x")}
        for one in orders
    ]
    figures = await _ask(rpc, chain, asked[0])
    estimates = await rpc.each(chain.rpc_urls, [("eth_estimateGas", [one]) for one in asked])
    max_fee, priority_fee, legacy = figures.fees
    limits = [_gas_of(chain, order, found) for order, found in zip(orders, estimates, strict=True)]
    price = min(max_fee, chain.max_fee_per_gas)
    _check_funds(
        sender,
        chain,
        figures.balance,
        sum(int(one.value) for one in orders) + sum(limit or chain.default_gas for limit in limits) * price,
    )
    first = _clamp(figures.nonce, chain.default_gas, max_fee, priority_fee, legacy=legacy)
    return CallsPrepared(first, limits)


def _gas_of(chain: Chain, order: EvmOrder, estimate: Any) -> int | None:
    if order.gas_limit:
        return min(int(order.gas_limit), _LARGEST)
    try:
        found = quantity(estimate)
    except UpstreamFailed:
        return None
    return min(found if found == PLAIN_TRANSFER_GAS else found * 6 // 5, _LARGEST)


def _clamp(nonce: int, gas: int, max_fee: int, priority_fee: int, *, legacy: bool) -> EvmPrepared:
    """Cut to what the signer gets to see: a frame holds 64-bit numbers, and larger ones are beyond any cap anyhow."""
    return EvmPrepared(
        pending_nonce=min(nonce, _LARGEST),
        gas_limit=min(gas, _LARGEST),
        max_fee=min(max_fee, _LARGEST),
        priority_fee=min(priority_fee, _LARGEST),
        legacy=legacy,
    )


async def broadcast(rpc: Rpc, chain: Chain, raw: bytes, tx_hash: str) -> None:
    """Send a signed transaction; a node that has it already took it. Raise BroadcastRefused if it did not."""
    try:
        await rpc.call(chain.rpc_urls, "eth_sendRawTransaction", ["0x" + raw.hex()])
    except RpcRefused as refusal:
        # "nonce too low" is also what a node says of our own transaction once it is mined, and every client words
        # "already known" its own way: what counts is whether the node knows the hash.
        if not await is_known(rpc, chain, tx_hash):
            raise BroadcastRefused(f"The node did not accept the transaction: {refusal.message}") from refusal


async def is_known(rpc: Rpc, chain: Chain, tx_hash: str) -> bool:
    """Say whether the node has a transaction, waiting or mined."""
    return await rpc.call(chain.rpc_urls, "eth_getTransactionByHash", [tx_hash]) is not None


async def balance(rpc: Rpc, chain: Chain, address: str) -> int:
    """Ask for the balance of an address in wei."""
    return quantity(await rpc.call(chain.rpc_urls, "eth_getBalance", [address, "latest"]))


async def receipt(rpc: Rpc, chain: Chain, tx_hash: str) -> Receipt | None:
    """Ask for the receipt of a transaction; None while it is not mined."""
    return receipt_of(await rpc.call(chain.rpc_urls, "eth_getTransactionReceipt", [tx_hash]), tx_hash)


def receipt_of(found: Any, tx_hash: str) -> Receipt | None:
    """Understand a node's receipt, which must be of this transaction; None while it is not mined."""
    if found is None:
        return None
    if str(_field(found, "transactionHash")).lower() != tx_hash.lower():
        raise _nonsense()
    gas_used, price = quantity(_field(found, "gasUsed")), quantity(found.get("effectiveGasPrice") or "0x0")
    return Receipt(
        block_number=block_number(_field(found, "blockNumber")),
        block_hash=_hash(_field(found, "blockHash")),
        succeeded=quantity(_field(found, "status")) == 1,
        gas_used=gas_used,
        effective_gas_price=price,
        fee=_whole_fee(found, gas_used * price) if found.get("effectiveGasPrice") else None,
    )


def _whole_fee(found: Any, fee: int) -> int | None:
    """With what a rollup says that it paid below; nonsense there is no reason to doubt where it was mined."""
    try:
        paid = fee + quantity(found.get("l1Fee") or "0x0")
    except UpstreamFailed:
        return None
    return paid if paid <= MAX_UINT256 else None


async def height(rpc: Rpc, chain: Chain) -> int:
    """Ask for the number of the newest block."""
    return quantity(await rpc.call(chain.rpc_urls, "eth_blockNumber", []))


async def call(rpc: Rpc, chain: Chain, to: str, data: bytes) -> bytes:
    """Ask what a contract would answer; nothing is sent."""
    answer = await rpc.call(chain.rpc_urls, "eth_call", [{"to": to, "data": "0x" + data.hex()}, "latest"])
    try:
        return bytes.fromhex(str(answer).removeprefix("0x"))
    except ValueError as problem:
        raise _nonsense() from problem


async def _ask(rpc: Rpc, chain: Chain, transaction: dict[str, str]) -> _Figures:
    sender = transaction["from"]
    chain_id, nonce, funds, block, tip, price, estimate = await rpc.batch(
        chain.rpc_urls,
        [
            ("eth_chainId", []),
            ("eth_getTransactionCount", [sender, "pending"]),
            ("eth_getBalance", [sender, "latest"]),
            ("eth_getBlockByNumber", ["latest", False]),
            ("eth_maxPriorityFeePerGas", []),
            ("eth_gasPrice", []),
            ("eth_estimateGas", [transaction]),
        ],
    )
    # A nonce of another chain would leave a gap on this one.
    if quantity(chain_id) != chain.id:
        raise RpcUnavailable(f"The node configured for chain {chain.id} serves chain {quantity(chain_id)}.")
    return _Figures(
        nonce=quantity(nonce),
        balance=quantity(funds),
        fees=_fees(chain, block, tip, price),
        estimate=estimate if isinstance(estimate, RpcRefused) else quantity(estimate),
    )


def _fees(chain: Chain, block: Any, tip: Any, price: Any) -> tuple[int, int, bool]:
    if isinstance(block, RpcRefused):
        raise block
    least = chain.min_priority_fee_per_gas
    if not isinstance(block, dict) or block.get("baseFeePerGas") is None:
        return max(quantity(price), least), 0, True
    # Nodes have suggested tips that their own pools refuse.
    priority_fee = max(chain.default_priority_fee_per_gas if isinstance(tip, RpcRefused) else quantity(tip), least)
    # Twice the base fee holds for six full blocks in a row.
    return 2 * quantity(block["baseFeePerGas"]) + priority_fee, priority_fee, False


def _gas(chain: Chain, figures: _Figures, order: EvmOrder, sender: str, value: int) -> int:
    # Without the funds every estimate fails, and the reason would mislead.
    _check_funds(sender, chain, figures.balance, value)
    if order.gas_limit:
        return int(order.gas_limit)
    estimate = figures.estimate
    if isinstance(estimate, int):
        # State can change before the block; a plain transfer always costs the same.
        return estimate if estimate == PLAIN_TRANSFER_GAS else estimate * 6 // 5
    if "insufficient funds" in estimate.message.lower():
        raise InsufficientFunds(
            f"{sender} cannot pay value and fee on {chain.name}; {_how_to_fund(chain)}", address=sender
        )
    if estimate.rpc_code == METHOD_NOT_FOUND and not (order.data or "").removeprefix("0x"):
        return chain.default_gas
    raise EstimateFailed(f"The node expects this transaction to fail: {reason_of(estimate)}")


def _check_funds(sender: str, chain: Chain, has: int, needs: int) -> None:
    if has < needs:
        coin = Unit(chain.symbol, chain.decimals, "wei")
        raise InsufficientFunds(
            f"{sender} has {coin.tell(has)} on {chain.name} and needs up to {coin.tell(needs)}; {_how_to_fund(chain)}",
            address=sender,
        )


def _how_to_fund(chain: Chain) -> str:
    if chain.id != _LOCAL_CHAIN_ID:
        return "fund the wallet."
    return (
        "fund the wallet. Custody's own local chain starts empty each time; its method dev_fund gives play money "
        "(docs/api.md, Play money)."
    )


def _field(answer: Any, name: str) -> Any:
    if isinstance(answer, UpstreamFailed):
        raise answer
    if not isinstance(answer, dict) or name not in answer:
        raise _nonsense()
    return answer[name]


def block_hash_of(found: Any) -> str | None:
    """The hash of a block; None for one that the node does not have."""
    return None if found is None else _hash(_field(found, "hash"))


def block_number(answer: Any) -> int:
    """The number of a block that some chain may come to, which fits a frame."""
    if (number := quantity(answer)) > _LARGEST:
        raise _nonsense()
    return number


def _hash(answer: Any) -> str:
    if not isinstance(answer, str) or _HASH.fullmatch(answer) is None:
        raise _nonsense()
    return answer


def quantity(answer: Any) -> int:
    """A number as JSON-RPC writes it; raises what is wrong with the answer."""
    if isinstance(answer, UpstreamFailed):
        raise answer
    try:
        number = int(answer, 16) if isinstance(answer, str) and answer.startswith("0x") else -1
    except ValueError as problem:
        raise _nonsense() from problem
    if not 0 <= number <= MAX_UINT256:
        raise _nonsense()
    return number


def _nonsense() -> RpcUnavailable:
    return RpcUnavailable("The node's response is not valid.")
