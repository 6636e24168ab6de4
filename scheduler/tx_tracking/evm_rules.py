"""The judgement of a node's answers on one EVM transaction. Pure.

Final is only what lies so deep that the chain does not take it back: a receipt whose block is still the chain's at that
height, or a nonce that the chain had used by then although no transaction of this
wallet was mined with it. A missing or invalid answer says nothing.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from custody.chains.evm.rpc import Receipt
from scheduler.tx_tracking.types import NOTHING, Followed, Member, News, Verdict

# What a node knows of a hash: nothing, that it waits, that it is in a block, or nobody could ask.
Known = Literal["absent", "waiting", "mined", "unknown"]
OPEN = ("signed", "broadcast")


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """A node's answers. `receipts`: by hash, without those that could not be had; `blocks`: the chain's hash by height.

    `used`: by address, how many nonces the chain had used at final depth; `known`: by hash.
    """

    final_height: int
    receipts: Mapping[str, Receipt | None]
    blocks: Mapping[int, str | None]
    used: Mapping[str, int] = {}
    known: Mapping[str, Known] = {}


def verdict(followed: Followed, answers: Answers) -> Verdict:
    """Judge what is certain about a transaction, and about those that share its nonce."""
    members = followed.slot or (Member(followed.id, followed.hash, followed.status),)
    if any(member.hash not in answers.receipts for member in members):
        return NOTHING
    for member in members:
        receipt = answers.receipts[member.hash]
        if receipt is not None and _is_final(receipt, answers):
            return Verdict(_decide(members, member, receipt))
    if any(answers.receipts[member.hash] is not None for member in members):
        # Mined, but not for good yet: a reorganization may still take it back.
        return _judge_sent(followed, is_known=answers.receipts[followed.hash] is not None)
    return _judge_unmined(followed, members, answers)


def _is_final(receipt: Receipt, answers: Answers) -> bool:
    height = receipt.block_number
    return height <= answers.final_height and answers.blocks.get(height) == receipt.block_hash


def _decide(members: tuple[Member, ...], mined: Member, receipt: Receipt) -> tuple[News, ...]:
    """The mined one took the nonce; no other of this wallet can be mined any more."""
    where = {"block": receipt.block_number, "block_hash": receipt.block_hash, "by": mined.hash}
    word = "confirmed" if receipt.succeeded else "reverted"
    return tuple(
        News(
            id=member.id,
            word=word if member is mined else "replaced",  # type: ignore[arg-type]
            fee=receipt.fee if member is mined else None,
            **where,  # type: ignore[arg-type]
        )
        for member in members
        if member.status in OPEN
    )


def _judge_unmined(followed: Followed, members: tuple[Member, ...], answers: Answers) -> Verdict:
    known = {answers.known.get(member.hash, "unknown") for member in members}
    used = answers.used.get(followed.address)
    if used is not None and used > followed.nonce:
        if known != {"absent"}:
            # The nonce is used and yet a node has one of ours: it contradicts itself, so it is asked again.
            return NOTHING
        final = {"block": answers.final_height, "block_hash": answers.blocks.get(answers.final_height)}
        return Verdict(
            tuple(News(id=one.id, word="replaced", **final) for one in members if one.status in OPEN)  # type: ignore[arg-type]
        )
    mine = answers.known.get(followed.hash, "unknown")
    if mine in ("waiting", "mined"):
        return _judge_sent(followed, is_known=True)
    return Verdict(forgotten=mine == "absent" and followed.status == "broadcast" and followed.is_newest)


def _judge_sent(followed: Followed, *, is_known: bool) -> Verdict:
    """A node has what we did not know to be sent: the process that sent it died before it could say so."""
    return Verdict((News(id=followed.id, word="sent"),)) if is_known and followed.status == "signed" else NOTHING
