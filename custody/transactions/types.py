"""A transaction as callers see it. Spec 1/2.5, decisions 4."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.errors import NotFound
from custody.kit.shapes import ChainId, HashOrAddress, ReferenceId, Uuid

Status = Literal["pending_approval", "rejected", "signed", "broadcast", "confirmed", "failed"]


class TransactionAbsent(NotFound):
    """There is no such transaction."""


class Transaction(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One order and what became of it. Amounts are decimal strings in the smallest unit."""

    id: str
    tx_id: str
    agent_id: str
    kind: str
    status: str
    status_detail: str | None
    to_address: str | None
    value: str | None
    data: Any
    chain_id: int | None
    caip2: str | None
    nonce: int | None
    tx_hash: str | None
    signature: str | None
    signed_transaction: str | None
    broadcast: bool
    reference_id: str | None
    action_id: str | None
    policy_results: list[dict[str, Any]]
    policy_version: int
    effects: list[dict[str, Any]]
    replaces_tx_id: str | None
    created_at: str
    signed_at: str | None
    broadcast_at: str | None
    confirmed_at: str | None


class TransactionPage(msgspec.Struct, frozen=True):
    """A page of transactions."""

    transactions: list[Transaction]
    total: int
    limit: int
    offset: int


class TransactionQuery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Filters; `from` and `to` are ISO times, both inclusive."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: Annotated[int, Meta(ge=0, le=2**31)] = 0
    status: Status | None = None
    chain_id: ChainId | None = None
    kind: Literal["evm", "typed_data", "solana", "bitcoin"] | None = None
    reference_id: ReferenceId | None = None
    tx_hash: HashOrAddress | None = None
    tx_id: Uuid | None = None
    to_address: HashOrAddress | None = None
    from_: Annotated[str, Meta(max_length=40)] | None = msgspec.field(default=None, name="from")
    to: Annotated[str, Meta(max_length=40)] | None = None


class PendingTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """The order behind a pending item."""

    id: str
    to_address: str | None
    value: str | None
    chain_id: int | None
    policy_results: list[dict[str, Any]]


class PendingItem(msgspec.Struct, frozen=True, rename="camel"):
    """One item of an agent's pending list (Spec 1/2.6, second shape)."""

    queue_id: str
    status: str
    requested_at: str
    transaction: PendingTransaction
