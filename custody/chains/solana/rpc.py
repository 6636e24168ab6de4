"""What a Solana node is asked before and after signing. Spec 1/4.3, decisions 4."""

import base64
from typing import Any, Literal

import msgspec

from custody.chains.orders import SolanaPrepared
from custody.chains.rpc import BroadcastRefused, Rpc, RpcRefused, RpcUnavailable
from custody.chains.table import Chain

_CONFIRMED = {"commitment": "confirmed"}


class SignatureStatus(msgspec.Struct, frozen=True):
    """How far the cluster is with a transaction; `failed` means that it was executed and took only the fee."""

    slot: int
    level: Literal["processed", "confirmed", "finalized"]
    failed: bool


class _Value(msgspec.Struct):
    value: Any


class _Blockhash(msgspec.Struct, rename="camel"):
    blockhash: str
    last_valid_block_height: int


class _Status(msgspec.Struct, rename="camel"):
    slot: int
    confirmation_status: Literal["processed", "confirmed", "finalized"] | None = None
    err: Any = None


async def prepare(rpc: Rpc, chain: Chain) -> SolanaPrepared:
    """Ask for a recent blockhash."""
    found = _value(await rpc.call(chain.rpc_urls, "getLatestBlockhash", [_CONFIRMED]), _Blockhash)
    return SolanaPrepared(found.blockhash, found.last_valid_block_height)


async def broadcast(rpc: Rpc, chain: Chain, raw: bytes, signature: str) -> None:
    """Send a signed transaction; a node that knows its signature took it. Raise BroadcastRefused if not."""
    options = {"encoding": "base64", "preflightCommitment": "confirmed"}
    try:
        await rpc.call(chain.rpc_urls, "sendTransaction", [base64.b64encode(raw).decode(), options])
    except RpcRefused as refusal:
        # A repeated transaction fails its rehearsal because it has already happened.
        if await status(rpc, chain, signature) is None:
            raise BroadcastRefused(f"The node did not take the transaction: {refusal.message}") from refusal


async def balance(rpc: Rpc, chain: Chain, address: str) -> int:
    """Ask for the balance of an address in lamports."""
    return _value(await rpc.call(chain.rpc_urls, "getBalance", [address, _CONFIRMED]), int)


async def status(rpc: Rpc, chain: Chain, signature: str) -> SignatureStatus | None:
    """Ask how far a transaction is; None while the node has not seen it."""
    search = {"searchTransactionHistory": True}
    answer = await rpc.call(chain.rpc_urls, "getSignatureStatuses", [[signature], search])
    found = _value(answer, list[_Status | None])
    if not found or found[0] is None:
        return None
    # A node that no longer says how deep it is has it finalized.
    return SignatureStatus(found[0].slot, found[0].confirmation_status or "finalized", found[0].err is not None)


async def height(rpc: Rpc, chain: Chain) -> int:
    """Ask for the finalized block height, which says when a blockhash can no longer be used."""
    answer = await rpc.call(chain.rpc_urls, "getBlockHeight", [{"commitment": "finalized"}])
    return _convert(answer, int)


def _value[T](answer: Any, kind: type[T]) -> T:
    return _convert(_convert(answer, _Value).value, kind)


def _convert[T](answer: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as problem:
        raise RpcUnavailable("The node gave an answer that makes no sense.") from problem
