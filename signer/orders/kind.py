"""The steps of every kind of order on its way to a signature, and the data that goes from step to step.

`check` looks at the order alone, `effects` says what its bytes do, `finish` fixes what only a signed order needs, and
`sign` makes the signature. They ask nobody, and only `sign` sees a key. `evaluate` calls them in this order.
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from custody.chains import families
from custody.chains.actions import WalletAction
from custody.chains.evm.transaction import EvmTransaction
from custody.chains.family import Chain
from custody.chains.table import ChainTable
from custody.chains.types import Effect, Subject
from custody.protocol.signer.order_refusals import UnknownChain
from custody.protocol.signer.outcomes import PaymentReleased, PsbtReleased
from signer.ledger import Facts, PsbtQuestion, Slot
from signer.wallets.keys import WalletKeys


class NeedsNode(Exception):
    """This order cannot be broadcast without what a node knows."""


class Replaced(msgspec.Struct, frozen=True):
    """A signed transaction that is stuck, and who signed it."""

    tx_id: str
    transaction: EvmTransaction
    sender: str


class Inputs(msgspec.Struct, frozen=True):
    """All that an order is checked with: the chains, what a node suggested, and what is known of its past."""

    chains: ChainTable
    # Each kind takes its own.
    prepared: msgspec.Struct | None = None
    approving: bool = False
    replaced: Replaced | None = None
    # Whether a person may let calls of a batch pass that no rule lists.
    unsafe_calls: bool = False
    # Bytes that are this order's alone, and the same each time.
    unique: bytes = bytes(32)
    # Of a payment by a route: what that lets be paid.
    limits: msgspec.Struct | None = None


class NonceRequest(msgspec.Struct, frozen=True):
    """The nonce an order wants, on a chain that numbers a wallet's transactions."""

    chain_id: int
    pending: int | None
    nonce: int | None
    takes_open_slot: bool
    replaces: str | None = None


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An order that is right by itself. Each kind adds what its own later steps need."""

    order_text: str
    digest: bytes
    chain: Chain | None
    broadcast: bool
    reference_id: str | None
    to_address: str | None
    value: str | None
    data: str | None
    nonce: NonceRequest | None = None
    # Of a PSBT: what must be known of its account and its coins.
    psbt: PsbtQuestion | None = None
    # Of an order that is a wallet action: what was asked for. Its reference makes it once.
    action: WalletAction | None = None
    # The second from which on nobody can use what it signs; an order that is signed afresh has none.
    ends: int | None = None
    # How many transactions it becomes.
    orders: int = 1

    @property
    def is_batch(self) -> bool:
        """Say whether it is a batch of calls, be it of one."""
        return self.action is not None and self.action.type == "send_calls"


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of the order, which are what the policies judge; `fee` is one of them."""

    subject: Subject
    fee: Effect | None


class Final(msgspec.Struct, frozen=True, kw_only=True):
    """An order that will be signed: everything is fixed but the signature."""

    nonce: int | None = None
    # Of a PSBT: the coins that are signed away, by transaction and index.
    coins: tuple[tuple[bytes, int], ...] = ()


class Produced(msgspec.Struct, frozen=True):
    """A signature and what came with it."""

    tx_hash: str | None
    signature: str
    raw: bytes | None
    psbt: PsbtReleased | None = None
    payment: PaymentReleased | None = None


class SecondReader[Checked: Draft](ABC):
    """Reads what will be signed with code that shares nothing with ours; where the two disagree nothing is signed."""

    def __init__(self) -> None:
        self._loaded = False

    async def load(self) -> None:
        """Import what it reads with, once, and in a thread: it may take a second, and most signers never need it."""
        if not self._loaded:
            await asyncio.to_thread(self.import_library)
            self._loaded = True

    @abstractmethod
    def import_library(self) -> None:
        """Import what it reads with."""

    @abstractmethod
    def confirm(self, draft: Checked) -> None:
        """Read it all again; raises Invalid unless it reads what we read. Runs in a thread, for it may be slow."""


class OrderKind[Order, Checked: Draft, Read: Decoded, Fixed: Final, Key](Protocol):
    """One kind of order. Every kind is a class in this package, and `built_in.py` lists them."""

    # As it stands in rows, answers and receipts.
    name: str
    # Whose key signs it.
    keys: WalletKeys[Key]
    # Where our own code reads bytes or documents that are signed as they come.
    second_reader: SecondReader[Checked] | None = None
    # An agent's own token is not enough: a signer of the agent must have authorised it.
    needs_signer: bool = False
    # What a signer who authorises it needs; one of these is enough.
    permissions: frozenset[str] = frozenset()

    @abstractmethod
    def check(self, order: Order, inputs: Inputs) -> Checked:
        """Refuse what is wrong with the order by itself; raises Invalid with what to change."""

    @abstractmethod
    def effects(self, draft: Checked, facts: Facts) -> Read:
        """Decode what the bytes do, and fix fees within the chain's caps."""

    @abstractmethod
    def finish(self, draft: Checked, decoded: Read, facts: Facts) -> Fixed:
        """Fix what only a signed order needs; may still refuse, or raise NeedsNode."""

    @abstractmethod
    def sign(self, final: Fixed, key: Key) -> Produced:
        """Sign with the opened key, whose address was compared."""

    @abstractmethod
    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed effects from a stored order alone.

        Raises Tampered, Invalid or ValueError unless its signature is that address's, over just that order.
        """


type AnyKind = OrderKind[Any, Any, Any, Any, Any]


class OrderKinds:
    """The kind of each order, by the class of the order and by the name under which it is stored.

    `stored` lists the orders that are stored as they are; the others become one of these.
    """

    def __init__(self, kinds: Mapping[type[object], AnyKind], stored: Sequence[type[object]]) -> None:
        self.by_order = dict(kinds)
        self._by_name = {kinds[order].name: kinds[order] for order in stored}

    def of(self, order: object) -> AnyKind:
        """The kind of an order that was decoded."""
        return self.by_order[type(order)]

    def of_name(self, name: str) -> AnyKind:
        """The kind of an order that is stored."""
        return self._by_name[name]


def taken_over(draft: Draft, slot: Slot | None) -> Slot | None:
    """The slot that an order may take although another order has it: an open one, or the one it replaces."""
    if slot is None or draft.nonce is None or slot.state == "seen":
        return None
    return slot if slot.state == "open" or slot.tx_id == draft.nonce.replaces else None


def chain_of(chains: ChainTable, chain_id: int | None, family: str) -> Chain:
    """The chain an order names, or the active one; it must be of the right family."""
    chain = chains.active if chain_id is None else chains.find(chain_id)
    if chain is None or chain.family != family:
        named = chain_id if chain_id is not None else chains.active.id
        known = ", ".join(str(one.id) for one in chains.all_of(family))
        title = families.of_name(family).title
        raise UnknownChain(f"Chain {named} is no {title} chain of this deployment; chainId may be {known or 'none'}.")
    return chain


def text_of(order: msgspec.Struct) -> str:
    """An order in its one stored spelling."""
    return msgspec.json.encode(order, order="deterministic").decode()


def digest_of(kind: str, content: bytes) -> bytes:
    """Hash what an approver sees and confirms: the caller's order, never what a node suggested."""
    return hashlib.sha256(b"custody-order-v1:" + kind.encode() + b":" + content).digest()
