"""A transaction that is followed, and what can be said about it."""

from typing import Literal

import msgspec

Word = Literal["sent", "confirmed", "reverted", "replaced", "expired", "lapsed", "canceled"]


class Member(msgspec.Struct, frozen=True):
    """One of our transactions that a nonce was signed for."""

    id: str
    hash: str
    status: str


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """One that was signed to be broadcast, by us or by whom it pays, and is not final; `slot` has itself too."""

    tenant: str
    id: str
    kind: str
    status: str
    address: str
    nonce: int
    hash: str
    raw: bytes
    age_seconds: float
    slot: tuple[Member, ...]

    @property
    def is_newest(self) -> bool:
        """True if no replacement exists."""
        return not self.slot or self.slot[0].id == self.id


class News(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one transaction, and where it is to be seen."""

    id: str
    word: Word
    block: int | None = None
    block_hash: str | None = None
    by: str | None = None
    # What it cost, in the smallest unit; None for one that cost nothing, and where the node does not say.
    fee: int | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The result of a look: news, or that no node has the bytes any more."""

    news: tuple[News, ...] = ()
    forgotten: bool = False


NOTHING = Verdict()
