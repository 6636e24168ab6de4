"""Ask a node about EVM transactions, all of one chain at once.

Three rounds of questions at most, whatever the number of transactions: receipts; then, where there is none, what the
chain had used at final depth and whether the node has the bytes; then the blocks that receipts name.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from custody.chains.evm import rpc as evm_rpc
from custody.chains.evm.rpc import Receipt
from custody.chains.family import Chain
from custody.chains.rpc import Query, Rpc, RpcUnavailable
from custody.kit.errors import UpstreamFailed
from scheduler.tx_tracking.evm_rules import Answers, Known, verdict
from scheduler.tx_tracking.types import Followed, Verdict


async def look(rpc: Rpc, chain: Chain, followed: Sequence[Followed]) -> list[Verdict]:
    """Find what became of each; raises RpcUnavailable when the node cannot be asked at all."""
    hashes = _once(hash_ for one in followed for hash_ in _hashes(one))
    final_height, receipts = await _receipts(rpc, chain, hashes)
    unmined = [one for one in followed if all(receipts.get(hash_, ...) is None for hash_ in _hashes(one))]
    used = await _used_nonces(rpc, chain, _once(one.address for one in unmined), final_height)
    known = await _look_up(rpc, chain, _once(hash_ for one in unmined for hash_ in _hashes(one)))
    heights = _once(receipt.block_number for receipt in receipts.values() if receipt is not None)
    blocks = await blocks_of(rpc, chain, [height for height in (*heights, final_height) if 0 <= height <= final_height])
    answers = Answers(final_height=final_height, receipts=receipts, blocks=blocks, used=used, known=known)
    return [verdict(one, answers) for one in followed]


async def _receipts(rpc: Rpc, chain: Chain, hashes: list[str]) -> tuple[int, dict[str, Receipt | None]]:
    questions: list[Query] = [("eth_chainId", []), ("eth_blockNumber", [])]
    questions += [("eth_getTransactionReceipt", [hash_]) for hash_ in hashes]
    chain_id, head, *found = await rpc.each(chain.rpc_urls, questions)
    receipts: dict[str, Receipt | None] = {}
    for hash_, answer in zip(hashes, found, strict=True):
        try:
            receipts[hash_] = evm_rpc.receipt_of(answer, hash_)
        except UpstreamFailed:
            # Nonsense about one says nothing about the others.
            continue
    return final_height_of(chain, chain_id, head), receipts


def final_height_of(chain: Chain, chain_id: Any, head: Any) -> int:
    """Read how high the chain is final from two answers; raises RpcUnavailable for another chain's."""
    if evm_rpc.quantity(chain_id) != chain.id:
        raise RpcUnavailable(f"The node configured for chain {chain.id} serves another one.")
    # A block counts as its own first confirmation.
    return evm_rpc.block_number(head) - max(chain.confirmations, 1) + 1


async def _used_nonces(rpc: Rpc, chain: Chain, addresses: list[str], final_height: int) -> dict[str, int]:
    """Read how many nonces the chain had used at final depth; without those that could not be had."""
    if final_height < 0:
        return {}
    at = hex(final_height)
    answers = await rpc.each(chain.rpc_urls, [("eth_getTransactionCount", [one, at]) for one in addresses])
    used = {}
    for address, answer in zip(addresses, answers, strict=True):
        try:
            used[address] = evm_rpc.quantity(answer)
        except UpstreamFailed:
            continue
    return used


async def _look_up(rpc: Rpc, chain: Chain, hashes: list[str]) -> dict[str, Known]:
    answers = await rpc.each(chain.rpc_urls, [("eth_getTransactionByHash", [hash_]) for hash_ in hashes])
    return {hash_: _what(answer) for hash_, answer in zip(hashes, answers, strict=True)}


def _what(answer: Any) -> Known:
    if answer is None:
        return "absent"
    if not isinstance(answer, dict):
        return "unknown"
    return "waiting" if answer.get("blockNumber") is None else "mined"


async def blocks_of(rpc: Rpc, chain: Chain, heights: list[int]) -> dict[int, str | None]:
    """Read the hash of the chain's block at each height; without those that could not be had."""
    answers = await rpc.each(chain.rpc_urls, [("eth_getBlockByNumber", [hex(height), False]) for height in heights])
    blocks = {}
    for height, answer in zip(heights, answers, strict=True):
        try:
            blocks[height] = evm_rpc.block_hash_of(answer)
        except UpstreamFailed:
            continue
    return blocks


def _hashes(followed: Followed) -> Iterable[str]:
    return [member.hash for member in followed.slot] or [followed.hash]


def _once[T](things: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(things))
