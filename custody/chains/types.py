"""The effects of an order, in words every chain shares.

An effect is decoded from the bytes that will be signed, never from what the caller says they do (promise P6).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from custody.chains.messages import Message

# An approval of this much or more is treated as unlimited: a person decides.
UNLIMITED = 2**128

EffectKind = Literal["transfer", "approval", "fee", "unread"]


class Call(msgspec.Struct, frozen=True):
    """A contract call as far as an allowlist needs to know it: selectors and addresses in lower case."""

    chain_id: int
    contract: str
    selector: str
    native_value: int = 0
    recipient: str | None = None
    spender: str | None = None
    amount: int | None = None
    decoded: bool = False
    # Whether the calls inside could be told, of one that holds others; if not, no list permits it.
    apart: bool = True
    # Whether it holds others, each of which is a call of its own.
    wraps: bool = False
    # Whether it is of a kind that is read, and its arguments cannot be: what it moves, or calls, is hidden.
    garbled: bool = False
    # What stands behind the selector, as it is.
    arguments: bytes = b""


class TypedFields(msgspec.Struct, frozen=True):
    """The whole type string of a document of typed data, and its values as they are hashed."""

    type: str
    fields: Mapping[str, Any]


class Account(msgspec.Struct, frozen=True):
    """An account whose address does not say whose it is, as token accounts on Solana are."""

    address: str

    @abstractmethod
    def owner_among(self, addresses: Iterable[str]) -> str | None:
        """The one of these addresses that owns it, if any does."""


class Effect(msgspec.Struct, frozen=True):
    """One thing the bytes do.

    `asset` is `evm:native`, `evm:<chainId>:<token>`, `solana:native`, `solana:<mint>` or `bitcoin`; amounts are
    integers in the smallest unit. A revocation is an approval of 0. `call` names the contract call the effect came
    from, if any, so that a contract-allowlist can vouch for it. An `unread` effect stands for bytes that nobody could
    decode: `label` says where they are, `size` how many. `unknown` says that it is typed data of a kind that is on no
    list here. `revokes` says that an approval can only take power away. A fee whose `to` is somebody else is a gift,
    and counts as spend. `nft` says the amount is a token id or count that no limit can judge. `account` is the token
    account on Solana that is paid into, and `unowned` says that nobody can tell who holds what arrives at `to`.
    """

    kind: EffectKind
    asset: str | None
    amount: int
    from_: str | None = None
    to: str | None = None
    spender: str | None = None
    unlimited: bool = False
    nft: bool = False
    unknown: bool = False
    label: str | None = None
    call: Call | None = None
    size: int | None = None
    revokes: bool = False
    account: Account | None = None
    unowned: bool = False


class Subject(msgspec.Struct, frozen=True):
    """The subject of a rule: the effects of one order and where it would happen.

    `destination` is the address the bytes go to (the contract, for a call); `chain_id` is None for typed data
    whose domain names no chain; `caip2` names the chain family even then as well as it is known. `bounded`: it is
    refused unless a contract-allowlist bounds the amount and the recipients of each call. `listed`: it is refused
    unless an enabled allowed-chains rule lists its chain. `parts` are the calls of a batch, each by itself: effects and
    calls of the whole are theirs together. `vouched`: what becomes of a call that no contract-allowlist lists.
    `named`: a person decides, unless a rule approved-addresses names whom it pays.
    `message` is what a wallet is asked to sign as it is; it is one effect, unless a message-allowlist lists it.
    """

    family: str
    kind: str
    chain_id: int | None
    caip2: str | None
    destination: str | None
    effects: tuple[Effect, ...]
    calls: tuple[Call, ...] = ()
    verifying_contract: str | None = None
    bounded: bool = False
    listed: bool = False
    parts: tuple["Subject", ...] = ()
    vouched: Literal["refuse", "queue"] | None = None
    message: Message | None = None
    named: bool = False
    typed: TypedFields | None = None
