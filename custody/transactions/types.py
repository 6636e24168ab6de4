"""A transaction as callers see it."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.kinds import Kind
from custody.identity.authority import Authorized
from custody.kit.cursors import Cursor, NextCursor
from custody.kit.described import Id, Instant, described
from custody.kit.paging import Page
from custody.kit.search_bounds import Bound
from custody.kit.shapes import AgentId, ChainId, HashOrAddress, Offset, ReferenceId, Uuid
from custody.policies.types import Result

# Rows of a page of transactions for which no number is given, and the most it may have.
USUAL_PAGE = 50
MAX_PAGE = 200
Status = Literal["pending_approval", "rejected", "signed", "broadcast", "confirmed", "failed"]


class TransactionSummary(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One order and what became of it. Amounts are decimal strings in the smallest unit."""

    id: Annotated[Id, described("The transaction's id.")]
    tx_id: Annotated[Id, described("The same as `id`.")]
    agent_id: Annotated[str, described("The agent.")]
    kind: Annotated[Kind, described("Kind of order.")]
    status: Annotated[Status, described("Present status.")]
    status_detail: Annotated[str | None, described("More about the status, such as why it failed.")]
    reason: Annotated[str | None, described("Why a person denied it, as they said it; else null.")]
    to_address: Annotated[str | None, described("The address that it goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    caip2: Annotated[str | None, described("The chain by its CAIP-2 name, such as `eip155:8453`.")]
    nonce: Annotated[int | None, described("The nonce of an EVM transaction.")]
    tx_hash: Annotated[
        str | None,
        described("The hash, or on Solana the signature of who pays the fee; null there while it is missing."),
    ]
    settled_by: Annotated[
        str | None,
        described(
            "Of a payment by x402: the hash by which whom it pays took it, as a node said; null if none is known."
        ),
    ]
    broadcast: Annotated[bool, described("True if the service sends it to a node.")]
    reference_id: Annotated[str | None, described("The caller's own reference.")]
    action_id: Annotated[str | None, described("The wallet action that it is, by the same id; else null.")]
    authorization: Annotated[
        Authorized | None, described("Signers of the agent that authorised the order; null if none did.")
    ]
    policy_results: Annotated[list[Result], described("Result of each rule for the order.")]
    policy_version: Annotated[int, described("The version of the policies that judged it.")]
    effects: Annotated[list[dict[str, Any]], described("Effects of the order, decoded from the bytes to be signed.")]
    replaces_tx_id: Annotated[Id | None, described("The transaction that this one replaces.")]
    created_at: Annotated[Instant, described("Time of the request.")]
    signed_at: Annotated[Instant | None, described("Time of signing.")]
    broadcast_at: Annotated[Instant | None, described("Time when a node accepted it.")]
    confirmed_at: Annotated[Instant | None, described("Time when its state became final.")]


class Transaction(TransactionSummary, frozen=True, rename="camel", kw_only=True):
    """The same, with the requested and the signed data."""

    data: Annotated[Any, described("The data to sign, as it was sent.")]
    signature: Annotated[str | None, described("The signature.")]
    signed_transaction: Annotated[str | None, described("The signed bytes.")]
    finalized_tx_hex: Annotated[
        str | UnsetType, described("Of a PSBT that was finished: the whole transaction in hex, for your broadcaster.")
    ] = UNSET
    vsize: Annotated[int | UnsetType, described("The size of that transaction in vbytes.")] = UNSET
    fee_sats: Annotated[str | UnsetType, described("Fee of that transaction, in satoshis.")] = UNSET


class ListedTransaction(TransactionSummary, frozen=True, rename="camel", kw_only=True):
    """A transaction in a list; `data`, `signature` and `signedTransaction` only with `include=data`."""

    data: Annotated[Any | UnsetType, described("The data to sign, as it was sent.")] = UNSET
    signature: Annotated[str | UnsetType | None, described("The signature.")] = UNSET
    signed_transaction: Annotated[str | UnsetType | None, described("The signed bytes.")] = UNSET


class TransactionPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of transactions; it ends before its limit where it reaches 4 MiB.

    On a page that a cursor names, `total` is what was counted when the walk began, and `offset` how many rows of it
    came before. An estimate grows with the walk, and its last page knows the number.
    """

    transactions: Annotated[list[ListedTransaction], described("The transactions, newest first.")]
    total: Annotated[
        int, described("Number of items, counted up to a thousand beyond the page; see `totalIsEstimate`.")
    ]
    total_is_estimate: Annotated[bool, described("True if there may be more than `total`.")]
    limit: Annotated[int, described("Number of items asked for.")]
    offset: Annotated[int, described("Number of items skipped.")]
    next_cursor: Annotated[NextCursor, described("Start of the next page, for `cursor`; null on the last one.")]


class HistoryQuery(Page, frozen=True, kw_only=True):
    """A page; `include=data`: with what was to be signed, and what was."""

    include: Annotated[Literal["data"] | None, described("`data`: with what was to be signed, and what was.")] = None
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None


class TransactionFilter(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The transactions to find; `from` and `to` are times or dates, both inclusive."""

    status: Annotated[Status | None, described("Only those in this state.")] = None
    chain_id: Annotated[ChainId | None, described("Only those on this chain.")] = None
    kind: Annotated[Kind | None, described("Only orders of this kind.")] = None
    reference_id: Annotated[ReferenceId | None, described("Only those with this reference.")] = None
    tx_hash: Annotated[HashOrAddress | None, described("Only the one with this hash.")] = None
    tx_id: Annotated[Uuid | None, described("Only the one with this id.")] = None
    to_address: Annotated[HashOrAddress | None, described("Only those to this address.")] = None
    from_: Annotated[Bound | None, described("Not before this time, RFC 3339 with a zone, or this date.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[Bound | None, described("Not after this time, RFC 3339 with a zone, or this date.")] = None


class TransactionQuery(TransactionFilter, frozen=True, rename="camel", kw_only=True):
    """Filters and a page."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE), described("Maximum number of items.")] = USUAL_PAGE
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None
    include: Annotated[Literal["data"] | None, described("`data`: with what was to be signed, and what was.")] = None


class TenantTransactionQuery(TransactionFilter, frozen=True, rename="camel", kw_only=True):
    """Filters, a page, and its form."""

    agent_id: Annotated[AgentId | None, described("Only those of this agent.")] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None,
        described("Maximum number of items. JSON: 200, and 50 if it is left out. CSV: 10,000, also if it is left out."),
    ] = None
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None
    include: Annotated[Literal["data"] | None, described("`data`: with what was to be signed, and what was.")] = None
    format: Annotated[
        Literal["json", "csv"], described("The form of the answer; without it the header `Accept` decides.")
    ] = "json"


class PendingTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """The order of a pending approval."""

    id: Annotated[Id, described("The transaction's id.")]
    to_address: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    policy_results: Annotated[list[Result], described("Result of each rule for the order.")]


class PendingItem(msgspec.Struct, frozen=True, rename="camel"):
    """One item of an agent's list of pending approvals."""

    queue_id: Annotated[Id, described("The approval's id.")]
    status: Annotated[Literal["pending"], described("Always `pending`.")]
    requested_at: Annotated[Instant, described("Time of the agent's request.")]
    transaction: Annotated[PendingTransaction, described("The order.")]
