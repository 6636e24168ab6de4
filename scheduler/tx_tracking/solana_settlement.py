"""Ask a node what became of payments by x402 of Solana wallets, all of one cluster at once.

Who pays the fee signs last, so the name of the transaction, which is that signature, is unknown here. What is known is
its message, byte by byte: a finalized transaction of the wallet that has this very message is the payment, and no other
can be. That it can never land is certain only when its blockhash is past its time in finalized blocks, and the wallet's
history, asked after that, goes back behind the signature and does not have it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction

from custody.chains.family import Chain
from custody.chains.rpc import Rpc
from custody.chains.solana import rpc as solana_rpc
from custody.chains.solana.message import blockhash_of
from custody.chains.solana.programs import MEMO_V2
from custody.chains.solana.rpc import Landed, Listed
from custody.kit import clock
from scheduler.tx_tracking.solana import MAY_EXPIRE_SECONDS
from scheduler.tx_tracking.types import NOTHING, Followed, News, Verdict

# Newest entries of a wallet's history that one look reads, and transactions of all of them that it asks for.
MAX_ENTRIES: Final = 200
MAX_TRANSACTIONS: Final = 200
# A cluster's clock and ours differ by less: what it dates earlier than so long before a signature is not signed here.
CLOCK_SECONDS: Final = 300.0


class Past(msgspec.Struct, frozen=True):
    """The entries of a history that could be a payment; `whole` if none from after its signature is left out."""

    entries: Sequence[Listed] = ()
    whole: bool = False


class Claim(msgspec.Struct, frozen=True):
    """A payment as it was signed: its message, the memo in it, and since when it may have landed."""

    message: bytes
    memo: str
    since: float


async def look(rpc: Rpc, chain: Chain, followed: Sequence[Followed]) -> list[Verdict]:
    """Find what became of each; raises RpcUnavailable when the node cannot be asked at all."""
    now = clock.now().timestamp()
    claims = {one.id: claim for one in followed if (claim := _claim(one, now)) is not None}
    known = [one for one in followed if one.id in claims]
    old = [one for one in known if one.age_seconds >= MAY_EXPIRE_SECONDS]
    ends = await solana_rpc.expired_at(rpc, chain, [blockhash_of(one.raw) for one in old])
    expired = {one.id: slot for one, slot in zip(old, ends, strict=True)}
    # Asked last: what had landed before the blockhash ended is in the history by now.
    histories = await solana_rpc.histories(rpc, chain, list({one.address for one in known}), MAX_ENTRIES)
    pasts = {one.id: _past(claims[one.id], histories.get(one.address)) for one in known}
    names = list(dict.fromkeys(each.signature for past in pasts.values() for each in past.entries))
    landed = await solana_rpc.transactions(rpc, chain, names[:MAX_TRANSACTIONS])
    return [
        _verdict(one, claims[one.id], pasts[one.id], landed, expired.get(one.id)) if one.id in claims else NOTHING
        for one in followed
    ]


def _claim(followed: Followed, now: float) -> Claim | None:
    try:
        message = VersionedTransaction.from_bytes(followed.raw).message
        keys = message.account_keys
        memos = [bytes(one.data) for one in message.instructions if keys[one.program_id_index] == MEMO_V2]
    except (ValueError, IndexError):
        return None
    return Claim(to_bytes_versioned(message), b"".join(memos).decode(errors="replace"), now - followed.age_seconds)


def _past(claim: Claim, history: Sequence[Listed] | None) -> Past:
    if history is None:
        return Past()
    since = claim.since - CLOCK_SECONDS
    later = [one for one in history if one.time is None or one.time >= since]
    could_be = [one for one in later if one.memo is None or claim.memo in one.memo]
    return Past(could_be, whole=len(history) < MAX_ENTRIES or len(later) < len(history))


def _verdict(
    followed: Followed,
    claim: Claim,
    past: Past,
    landed: Mapping[str, Landed],
    expired: int | None,
) -> Verdict:
    ours = [(one, at) for one in past.entries if (at := landed.get(one.signature)) and at.message == claim.message]
    if len(ours) == 1:
        [(listed, at)] = ours
        if (listed.failed, listed.slot) != (at.failed, at.slot):
            # The node contradicts itself, so it is asked again.
            return NOTHING
        word: Any = "reverted" if at.failed else "confirmed"
        return Verdict((News(id=followed.id, word=word, block=at.slot, by=listed.signature),))
    is_read = past.whole and all(one.signature in landed for one in past.entries)
    if not ours and expired is not None and is_read:
        return Verdict((News(id=followed.id, word="expired", block=expired),))
    return NOTHING
