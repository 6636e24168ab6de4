"""EVM transactions: built from fields, with fees within the chain's caps and a nonce from the ledger."""

from collections.abc import Mapping
from typing import Any

import coincurve
import msgspec

from custody.chains.evm import calldata
from custody.chains.evm.address import checksum, parse_address
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.chains.evm.signed import read as read_signed
from custody.chains.evm.transaction import BadTransaction, EvmTransaction, ValueOutOfRange
from custody.chains.evm.transaction import sign as sign_evm
from custody.chains.families import caip2
from custody.chains.family import Chain
from custody.chains.table import ChainTable
from custody.chains.types import Effect, Subject
from custody.kit.shapes import MAX_UINT256
from custody.protocol.signer.order_refusals import (
    FeeAboveCap,
    FeeTooLow,
    GasLimitTooLow,
    NonceGap,
    NonceImplausible,
    NonceTaken,
    NonceUsed,
)
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.kind import (
    Decoded,
    Draft,
    Final,
    Inputs,
    NeedsNode,
    NonceRequest,
    OrderKind,
    Produced,
    chain_of,
    digest_of,
    text_of,
)
from signer.wallets.evm import EVM_KEYS

MAX_AHEAD = 10_000
MAX_NONCE = 2**53
# What the network takes for any transaction; no lower gas limit can succeed.
_LEAST_GAS = 21_000


class Fees(msgspec.Struct, frozen=True):
    """The most a transaction may cost, in wei but for the gas limit."""

    gas_limit: int
    max_fee: int
    priority_fee: int


class EvmDraft(Draft, frozen=True, kw_only=True):
    """A transaction's fields, checked and in their normal form."""

    order: EvmOrder
    prepared: EvmPrepared | None
    chain: Chain
    to: str
    amount: int
    calldata: bytes


class EvmDecoded(Decoded, frozen=True, kw_only=True):
    """The effects of the transaction, at these fees."""

    fees: Fees


class EvmFinal(Final, frozen=True, kw_only=True):
    """The transaction, to the last field."""

    transaction: EvmTransaction


class EvmTransactionKind(OrderKind[EvmOrder, EvmDraft, EvmDecoded, EvmFinal, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/sign`."""

    name = "evm"
    keys = EVM_KEYS
    permissions = frozenset({"sign_transaction"})

    def check(self, order: EvmOrder, inputs: Inputs) -> EvmDraft:
        """Chain known, numbers in range, the caller's own fees below the caps."""
        prepared = inputs.prepared if isinstance(inputs.prepared, EvmPrepared) else None
        return check(order, prepared, inputs.chains)

    def effects(self, draft: EvmDraft, facts: Facts) -> EvmDecoded:
        """Decode what the call does, and what it may cost at most."""
        return decode(draft, facts, _fees(draft))

    def finish(self, draft: EvmDraft, decoded: EvmDecoded, facts: Facts) -> EvmFinal:
        """Choose the nonce."""
        need_node(draft)
        legacy = draft.prepared.legacy if draft.prepared else False
        return final(draft, decoded.fees, _nonce(draft, facts), legacy=legacy)

    def sign(self, final: EvmFinal, key: coincurve.PrivateKey) -> Produced:
        """Encode and sign."""
        return sign(final, key)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed bytes."""
        return signed_effects(row, address)


EVM_TRANSACTION = EvmTransactionKind()


# The steps that a transaction has in common with its replacement.


def check(order: EvmOrder, prepared: EvmPrepared | None, chains: ChainTable, replaces: str | None = None) -> EvmDraft:
    """An order whose chain is known, whose numbers are in range, and whose own fees are below the caps."""
    chain = chain_of(chains, order.chain_id, "evm")
    # The order keeps the chain's id: a later change of the active chain must not change what a person approves.
    order = msgspec.structs.replace(order, chain_id=chain.id)
    to = parse_address(order.to)
    value = int(order.value)
    if value > MAX_UINT256:
        raise ValueOutOfRange
    _check_callers_fees(order, prepared, chain)
    text = text_of(order)
    return EvmDraft(
        order_text=text,
        digest=digest_of("evm", text.encode()),
        chain=chain,
        broadcast=order.broadcast,
        reference_id=order.reference_id,
        to_address=checksum(to),
        value=order.value,
        data=order.data,
        nonce=NonceRequest(
            chain_id=chain.id,
            pending=min(prepared.pending_nonce, MAX_NONCE) if prepared else None,
            nonce=order.nonce,
            takes_open_slot=order.broadcast and order.nonce is None,
            replaces=replaces,
        ),
        order=order,
        prepared=prepared,
        to=to,
        amount=value,
        calldata=bytes.fromhex((order.data or "").removeprefix("0x")),
    )


def decode(draft: EvmDraft, facts: Facts, fees: Fees) -> EvmDecoded:
    """Decode what the call does to this wallet, with the fee as one of its effects."""
    us, chain = facts.address.lower(), draft.chain
    effects, calls = calldata.decode(draft.to, draft.amount, draft.calldata, chain.id, us)
    fee = Effect("fee", EVM_NATIVE, fees.gas_limit * fees.max_fee, from_=us, label="at most")
    return EvmDecoded(
        subject=Subject("evm", "evm", chain.id, caip2(chain), draft.to, (*effects, fee), calls), fee=fee, fees=fees
    )


def need_node(draft: EvmDraft) -> None:
    """Raise NeedsNode where a node must be asked before a broadcast, and was not."""
    if draft.broadcast and draft.prepared is None:
        raise NeedsNode


def final(draft: EvmDraft, fees: Fees, nonce: int, *, legacy: bool) -> EvmFinal:
    """The transaction, to the last field."""
    transaction = EvmTransaction(
        chain_id=draft.chain.id,
        nonce=nonce,
        gas_limit=fees.gas_limit,
        max_fee=fees.max_fee,
        priority_fee=fees.priority_fee,
        to=draft.to,
        value=draft.amount,
        data=draft.calldata,
        legacy=legacy,
    )
    return EvmFinal(nonce=nonce, transaction=transaction)


def sign(final: EvmFinal, key: coincurve.PrivateKey) -> Produced:
    """The signed bytes and their transaction hash."""
    made = sign_evm(final.transaction, key)
    return Produced(made.hash, made.hash, made.raw)


def signed_effects(row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
    """Read what the signed bytes of a row do, the fee among it; their signature must be this address's."""
    found = read_signed(row["signed_bytes"])
    transaction = found.transaction
    place = (found.sender, found.hash, transaction.chain_id, transaction.nonce)
    if place != (address, row["tx_hash"], row["chain_id"], row["nonce"]):
        raise Tampered
    us = found.sender.lower()
    effects, _ = calldata.decode(transaction.to, transaction.value, transaction.data, transaction.chain_id, us)
    return (*effects, Effect("fee", EVM_NATIVE, transaction.gas_limit * transaction.max_fee, from_=us, label="at most"))


def _check_callers_fees(order: EvmOrder, prepared: EvmPrepared | None, chain: Chain) -> None:
    """Refuse gas or a fee of the caller's own that cannot be signed as it is; what is chosen here is fitted instead."""
    fee, tip = order.max_fee_per_gas, order.max_priority_fee_per_gas
    # The caller may have a node of their own for what is not broadcast here.
    least = chain.min_priority_fee_per_gas if order.broadcast else 0
    limits = (
        ("maxFeePerGas", fee, least, chain.max_fee_per_gas),
        ("maxPriorityFeePerGas", tip, least, min(chain.max_priority_fee_per_gas, chain.max_fee_per_gas)),
        ("gasLimit", order.gas_limit, 0, 2**63 - 1),
    )
    for name, asked, floor, cap in limits:
        if asked is not None and int(asked) > cap:
            raise FeeAboveCap(f"{name} {asked} is above the cap of {cap} for {chain.name}.")
        if asked is not None and int(asked) < floor:
            raise FeeTooLow(f"{name} {asked} is below {floor}, the least that nodes of {chain.name} take.")
    if fee is not None and tip is not None and int(tip) > int(fee):
        raise BadTransaction(f"maxPriorityFeePerGas {tip} is above maxFeePerGas {fee}: lower the tip or raise the fee.")
    if prepared is not None:
        check_tip(order, chain, legacy=prepared.legacy)
    if order.gas_limit is not None and int(order.gas_limit) < _LEAST_GAS:
        raise GasLimitTooLow


def _fees(draft: EvmDraft) -> Fees:
    """Gas limit, fee and priority fee per gas: the caller's as they are, others within the chain's floor and caps."""
    order, prepared, chain = draft.order, draft.prepared, draft.chain
    plain_gas = _LEAST_GAS if prepared is not None and not draft.calldata else chain.default_gas
    gas_limit = int(order.gas_limit) if order.gas_limit else (prepared.gas_limit if prepared else plain_gas)
    gas_limit = max(gas_limit, _LEAST_GAS)
    suggested = prepared.max_fee if prepared else chain.default_max_fee_per_gas
    suggested_tip = prepared.priority_fee if prepared else chain.default_priority_fee_per_gas
    if min(suggested, suggested_tip) < 0:
        raise BadTransaction("A node is said to ask for a fee below 0.")
    floor = chain.min_priority_fee_per_gas
    tip = int(order.max_priority_fee_per_gas or min(max(suggested_tip, floor), chain.max_priority_fee_per_gas))
    # What is left for the base fee stays the same, whatever the tip. Without a market for blocks the price is all.
    chosen = max(suggested - suggested_tip, 0) + tip
    if prepared is not None and prepared.legacy:
        chosen = suggested
    max_fee = int(order.max_fee_per_gas or min(max(chosen, floor), chain.max_fee_per_gas))
    if gas_limit * max_fee > chain.max_fee_per_transaction:
        most = chain.max_fee_per_transaction // gas_limit
        if order.max_fee_per_gas or order.gas_limit or most < max(floor, int(order.max_priority_fee_per_gas or 0)):
            raise FeeAboveCap(
                f"{gas_limit} gas at {max_fee} wei is {gas_limit * max_fee} wei, above the cap of "
                f"{chain.max_fee_per_transaction} for one transaction on {chain.name}."
            )
        max_fee = most
    return Fees(gas_limit, max_fee, min(tip, max_fee))


def check_tip(order: EvmOrder, chain: Chain, *, legacy: bool) -> None:
    """Refuse a caller's tip where none can be signed: a legacy transaction has one price."""
    if legacy and order.max_priority_fee_per_gas not in (None, order.max_fee_per_gas):
        raise BadTransaction(
            f"{chain.name} has no EIP-1559 blocks, so maxFeePerGas is the whole price of gas, and there is no tip: "
            "give maxPriorityFeePerGas the same value."
        )


def _nonce(draft: EvmDraft, facts: Facts) -> int:
    """The nonce slot that this order takes."""
    order, prepared = draft.order, draft.prepared
    pending = prepared.pending_nonce if prepared else 0
    known = 0 if facts.highest_nonce is None else facts.highest_nonce + 1
    # Without this bound one signature with the highest nonce would leave the wallet no nonce, for ever.
    if max(pending, order.nonce or 0) > known + MAX_AHEAD:
        raise NonceImplausible(f"Nonce {max(pending, order.nonce or 0)} is more than {MAX_AHEAD} ahead of {known}.")
    first_new = max(pending, known)
    if order.nonce is None:
        return facts.slot.nonce if facts.slot is not None else first_new
    if order.nonce < pending:
        raise NonceUsed(f"Nonce {order.nonce} has already been used on the chain; the next nonce is {pending}.")
    if facts.slot is not None and facts.slot.state != "open":
        raise NonceTaken(f"Nonce {order.nonce} belongs to transaction {facts.slot.tx_id}, which was already sent.")
    if facts.slot is None and order.broadcast and order.nonce > first_new:
        raise NonceGap(f"Nonce {order.nonce} leaves a gap; the next nonce is {first_new}.")
    return order.nonce
