"""Ask a node about Solana transactions, all of one cluster at once.

A transaction lives as long as its blockhash. That it can never land is certain only when the blockhash is past its time
in finalized blocks, and the whole history, asked after that, does not have it.
"""

import asyncio
from collections.abc import Sequence

from custody.chains.family import Chain
from custody.chains.rpc import Rpc, RpcUnavailable
from custody.chains.solana import rpc as solana_rpc
from custody.chains.solana.message import blockhash_of
from custody.chains.solana.rpc import SignatureStatus
from custody.kit.errors import UpstreamFailed
from scheduler.tx_tracking.types import NOTHING, Followed, News, Verdict

# A blockhash serves for about 90 seconds. Before this age a node that says otherwise is one that lags behind.
MAY_EXPIRE_SECONDS = 150.0
# Of the time that a look at a chain may take: what a transaction cost is worth no second look.
FEE_SECONDS = 3.0


async def look(rpc: Rpc, chain: Chain, followed: Sequence[Followed]) -> list[Verdict]:
    """Find what became of each; raises RpcUnavailable when the node cannot be asked at all."""
    found = await solana_rpc.statuses(rpc, chain, [one.hash for one in followed])
    old = [one for one, status in zip(followed, found, strict=True) if status is None and _may_expire(one)]
    expired = await _find_expired(rpc, chain, old)
    fees = await _fees(rpc, chain, followed, found)
    return [
        _verdict(one, status, expired.get(one.id), fees.get(one.id))
        for one, status in zip(followed, found, strict=True)
    ]


async def _fees(
    rpc: Rpc, chain: Chain, followed: Sequence[Followed], found: Sequence[SignatureStatus | RpcUnavailable | None]
) -> dict[str, int]:
    """Read what those that are final cost, where the node tells in time; that they are final is told all the same."""
    final = [
        one
        for one, status in zip(followed, found, strict=True)
        if isinstance(status, SignatureStatus) and status.level == "finalized"
    ]
    try:
        async with asyncio.timeout(FEE_SECONDS):
            fees = await solana_rpc.fees(rpc, chain, [one.hash for one in final])
    except (UpstreamFailed, TimeoutError):
        return {}
    return {one.id: fee for one, fee in zip(final, fees, strict=True) if fee is not None}


def _may_expire(followed: Followed) -> bool:
    return followed.age_seconds >= MAY_EXPIRE_SECONDS


async def _find_expired(rpc: Rpc, chain: Chain, followed: Sequence[Followed]) -> dict[str, int]:
    """Those that can never land, with the finalized slot that proves it."""
    if not followed:
        return {}
    since = await solana_rpc.expired_at(rpc, chain, [blockhash_of(one.raw) for one in followed])
    over = [(one, slot) for one, slot in zip(followed, since, strict=True) if slot is not None]
    if not over:
        return {}
    # Asked last: what had landed before the blockhash ended is in the history by now.
    again = await solana_rpc.statuses(rpc, chain, [one.hash for one, _ in over])
    return {one.id: slot for (one, slot), status in zip(over, again, strict=True) if status is None}


def _verdict(
    followed: Followed, status: SignatureStatus | RpcUnavailable | None, expired: int | None, fee: int | None
) -> Verdict:
    if isinstance(status, RpcUnavailable):
        return NOTHING
    if status is None:
        if expired is not None:
            return Verdict((News(id=followed.id, word="expired", block=expired),))
        return Verdict(forgotten=followed.status == "broadcast")
    if status.level == "finalized":
        word = "reverted" if status.failed else "confirmed"
        told = News(id=followed.id, word=word, block=status.slot, by=followed.hash, fee=fee)  # type: ignore[arg-type]
        return Verdict((told,))
    return Verdict((News(id=followed.id, word="sent"),)) if followed.status == "signed" else NOTHING
