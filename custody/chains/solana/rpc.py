"""The questions to a Solana node before and after signing."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction

from custody.chains.family import Chain
from custody.chains.rpc import BroadcastRefused, Rpc, RpcRefused, RpcUnavailable
from custody.chains.solana.orders import SolanaOrder, SolanaPrepared
from custody.kit.shapes import SolanaAddress

_CONFIRMED = {"commitment": "confirmed"}
_IN_HISTORY = {"searchTransactionHistory": True}
# No cluster comes to more, and a frame holds it.
_Height = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Signature = Annotated[str, msgspec.Meta(min_length=64, max_length=88, pattern=r"^[1-9A-HJ-NP-Za-km-z]+\Z")]

NEEDS_SENDER = False


class SignatureStatus(msgspec.Struct, frozen=True):
    """The progress of the cluster with a transaction; `failed` means that it was executed and took only the fee."""

    slot: int
    level: Literal["processed", "confirmed", "finalized"]
    failed: bool


class _Value(msgspec.Struct):
    value: Any


class _Context(msgspec.Struct):
    slot: _Height


class _Validity(msgspec.Struct):
    context: _Context
    value: bool


class _Blockhash(msgspec.Struct, rename="camel"):
    # As many bytes as an address has, written like one.
    blockhash: SolanaAddress
    last_valid_block_height: _Height


class _Status(msgspec.Struct, rename="camel"):
    slot: _Height
    confirmation_status: Literal["processed", "confirmed", "finalized"] | None = None
    err: Any = None


class _Meta(msgspec.Struct):
    fee: _Height


class _Landed(msgspec.Struct):
    meta: _Meta


class Listed(msgspec.Struct, frozen=True):
    """An entry of an address' history: a finalized transaction that names it, and what the node says of that."""

    signature: str
    slot: int
    failed: bool
    memo: str | None
    time: int | None


class Landed(msgspec.Struct, frozen=True):
    """A finalized transaction: the bytes of its message, of which its signatures are, and where it stands."""

    message: bytes
    slot: int
    failed: bool


class _Entry(msgspec.Struct, rename="camel"):
    signature: _Signature
    slot: _Height
    err: Any = None
    memo: str | None = None
    block_time: int | None = None


class _Outcome(msgspec.Struct):
    err: Any = None


class _Whole(msgspec.Struct):
    slot: _Height
    meta: _Outcome
    transaction: tuple[str, Literal["base64"]]


async def prepare(rpc: Rpc, chain: Chain, sender: str = "", order: SolanaOrder | None = None) -> SolanaPrepared:
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
            raise BroadcastRefused(f"The node did not accept the transaction: {refusal.message}") from refusal


async def balance(rpc: Rpc, chain: Chain, address: str) -> int:
    """Ask for the balance of an address in lamports."""
    return _value(await rpc.call(chain.rpc_urls, "getBalance", [address, _CONFIRMED]), int)


async def status(rpc: Rpc, chain: Chain, signature: str) -> SignatureStatus | None:
    """Ask how far a transaction is; None while the node has not seen it."""
    [found] = await statuses(rpc, chain, [signature])
    if isinstance(found, RpcUnavailable):
        raise found
    return found


async def statuses(rpc: Rpc, chain: Chain, signatures: Sequence[str]) -> list[SignatureStatus | RpcUnavailable | None]:
    """Read how far each transaction is; None for one that the node has never seen, an error for nonsense about one."""
    answer = await rpc.call(chain.rpc_urls, "getSignatureStatuses", [list(signatures), _IN_HISTORY])
    found = _value(answer, list[Any])
    if len(found) != len(signatures):
        raise _nonsense()
    return [_status(one) for one in found]


def _status(found: Any) -> SignatureStatus | RpcUnavailable | None:
    if found is None:
        return None
    try:
        known = _convert(found, _Status)
    except RpcUnavailable as problem:
        return problem
    # A node that no longer says how deep it is has it finalized.
    return SignatureStatus(known.slot, known.confirmation_status or "finalized", known.err is not None)


async def fees(rpc: Rpc, chain: Chain, signatures: Sequence[str]) -> list[int | None]:
    """Read the fee of each finalized transaction in lamports; None where the node does not say."""
    if not signatures:
        return []
    options = {"commitment": "finalized", "encoding": "base64", "maxSupportedTransactionVersion": 0}
    answers = await rpc.each(chain.rpc_urls, [("getTransaction", [one, options]) for one in signatures])
    return [_fee(answer) for answer in answers]


def _fee(answer: Any) -> int | None:
    try:
        return _convert(answer, _Landed).meta.fee
    except RpcUnavailable:
        return None


async def histories(rpc: Rpc, chain: Chain, addresses: Sequence[str], limit: int) -> dict[str, list[Listed]]:
    """Read the newest finalized transactions that name each address; without those that could not be had."""
    options = {"commitment": "finalized", "limit": limit}
    answers = await rpc.each(chain.rpc_urls, [("getSignaturesForAddress", [one, options]) for one in addresses])
    found = {}
    for address, answer in zip(addresses, answers, strict=True):
        try:
            entries = _convert(answer, list[_Entry])
        except RpcUnavailable:
            continue
        if len(entries) <= limit and len({one.signature for one in entries}) == len(entries):
            found[address] = [Listed(e.signature, e.slot, e.err is not None, e.memo, e.block_time) for e in entries]
    return found


async def transactions(rpc: Rpc, chain: Chain, signatures: Sequence[str]) -> dict[str, Landed]:
    """Read whole finalized transactions; without those that could not be had, or whose signatures are not theirs."""
    options = {"commitment": "finalized", "encoding": "base64", "maxSupportedTransactionVersion": 0}
    answers = await rpc.each(chain.rpc_urls, [("getTransaction", [one, options]) for one in signatures])
    found = {}
    for signature, answer in zip(signatures, answers, strict=True):
        try:
            whole = _convert(answer, _Whole)
            signed = VersionedTransaction.from_bytes(base64.b64decode(whole.transaction[0], validate=True))
            genuine = str(signed.signatures[0]) == signature and all(signed.verify_with_results())
        except (RpcUnavailable, ValueError, IndexError):
            continue
        if genuine:
            found[signature] = Landed(to_bytes_versioned(signed.message), whole.slot, whole.meta.err is not None)
    return found


async def expired_at(rpc: Rpc, chain: Chain, blockhashes: Sequence[str]) -> list[int | None]:
    """The finalized slot at which each blockhash can no longer be used; None where it can, or nobody knows.

    A blockhash that is too new for the finalized block is invalid there as well; only one that is invalid in the newest
    confirmed block too is past its time.
    """
    questions = [
        ("isBlockhashValid", [blockhash, {"commitment": commitment}])
        for blockhash in blockhashes
        for commitment in ("confirmed", "finalized")
    ]
    answers = [_invalid_since(answer) for answer in await rpc.each(chain.rpc_urls, questions)]
    return [final if new is not None else None for new, final in zip(answers[::2], answers[1::2], strict=True)]


def _invalid_since(answer: Any) -> int | None:
    try:
        said = _convert(answer, _Validity)
    except RpcUnavailable:
        return None
    return None if said.value else said.context.slot


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
        raise _nonsense() from problem


def _nonsense() -> RpcUnavailable:
    return RpcUnavailable("The node's response is not valid.")
