"""An order on its way to a signature: what is known of it at each step. Promise P6.

`Draft` is checked by itself, `Built` has its effects and can be judged, `Final` has its nonce, `Unlocked` its key.
"""

import hashlib
from collections.abc import Callable

import msgspec

from custody.chains.table import Chain, ChainTable
from custody.chains.types import Effect, Subject
from custody.kit.errors import Invalid
from custody.transactions.ledger import Facts, Slot


class UnknownChain(Invalid):
    """This chain is not configured here."""


class FeeAboveCap(Invalid):
    """The fee asked for is above this chain's cap."""


class NeedsNode(Exception):
    """This order cannot be broadcast without what a node knows."""


class Produced(msgspec.Struct, frozen=True):
    """A signature and what came with it."""

    tx_hash: str | None
    signature: str
    raw: bytes | None


class Unlocked(msgspec.Struct, frozen=True):
    """An opened key, as little of it as is needed: the address it really has, and one signature."""

    address: str
    sign: Callable[[], Produced]


class Final(msgspec.Struct, frozen=True):
    """What is decided only for an order that will be signed: its nonce, and how the key signs it."""

    nonce: int | None
    unlock: Callable[[bytes], Unlocked]


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """An order ready to be judged; `finish` is called when the verdict allows it, and may still refuse."""

    kind: str
    subject: Subject
    to_address: str | None
    value: str | None
    data: str | None
    chain: Chain | None
    broadcast: bool
    reference_id: str | None
    fee: Effect | None
    finish: Callable[[], Final]


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was checked without asking anybody: what is wrong with it by itself is already refused."""

    kind: str
    purpose: str
    order_text: str
    digest: bytes
    chain: Chain | None
    broadcast: bool
    pending_nonce: int | None = None
    nonce: int | None = None
    takes_open_slot: bool = False
    replaces: str | None = None
    build: Callable[[Facts], Built]


def taken_over(draft: Draft, slot: Slot | None) -> Slot | None:
    """The slot that an order may take although one of ours has it: an open one, or the one of what it replaces."""
    if slot is None or slot.state == "seen":
        return None
    return slot if slot.state == "open" or slot.tx_id == draft.replaces else None


def chain_of(chains: ChainTable, chain_id: int | None, family: str) -> Chain:
    """The chain an order names, or the active one; it must be of the right family."""
    chain = chains.active if chain_id is None else chains.find(chain_id)
    if chain is None or chain.family != family:
        raise UnknownChain(
            f"Chain {chain_id if chain_id is not None else chains.active.id} is not an {family.upper()} chain "
            "known here."
        )
    return chain


def text_of(order: msgspec.Struct) -> str:
    """An order in its one stored spelling."""
    return msgspec.json.encode(order, order="deterministic").decode()


def digest_of(kind: str, content: bytes) -> bytes:
    """What an approver sees and confirms: of the caller's order, never of what a node suggested."""
    return hashlib.sha256(b"custody-order-v1:" + kind.encode() + b":" + content).digest()
