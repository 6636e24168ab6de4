"""EVM orders: built from fields, with fees within the chain's caps and a nonce from the ledger. Spec 1/4.3."""

import coincurve
import msgspec

from custody.chains.evm import calldata
from custody.chains.evm.address import address_of, checksum, parse_address
from custody.chains.evm.transaction import EvmTransaction
from custody.chains.evm.transaction import sign as sign_evm
from custody.chains.orders import EvmOrder, EvmPrepared
from custody.chains.table import Chain, ChainTable
from custody.chains.types import EVM_NATIVE, Effect, Subject
from custody.kit.errors import Conflict, Invalid
from custody.kit.shapes import MAX_UINT256
from custody.transactions.ledger import Facts
from signer.draft import Built, Draft, FeeAboveCap, Final, NeedsNode, Produced, Unlocked, chain_of, digest_of, text_of
from signer.raised import Replaced, raised_fees
from signer.sealing import Tampered

MAX_AHEAD = 10_000
MAX_NONCE = 2**53


class NonceTaken(Conflict):
    """This nonce was already used for a transaction that was sent."""


class NonceUsed(Conflict):
    """The chain has already used this nonce."""


class NonceImplausible(Conflict):
    """This nonce is far ahead of every one that this wallet has used."""


class NonceGap(Invalid):
    """A transaction with this nonce could not be mined, because lower nonces are missing."""


class AlreadyReplaced(Conflict):
    """Another transaction has taken this nonce since."""


def draft(order: EvmOrder, prepared: EvmPrepared | None, chains: ChainTable, replaced: Replaced | None = None) -> Draft:
    chain = chain_of(chains, order.chain_id, "evm")
    # Written into the order: what a person approves must not follow a later change of the active chain.
    order = msgspec.structs.replace(order, chain_id=chain.id)
    to = parse_address(order.to)
    value = int(order.value)
    if value > MAX_UINT256:
        raise Invalid("value is larger than 2^256 - 1.", code="value_out_of_range")
    data = bytes.fromhex((order.data or "").removeprefix("0x"))
    _caller_fees(order, chain)
    text = text_of(order)
    if replaced is not None:
        _check_same(replaced.transaction, (chain.id, order.nonce, to, value, data))

    def build(facts: Facts) -> Built:
        if replaced is not None:
            _check_replaced(replaced, facts)
        gas_limit, max_fee, priority = _fees(order, prepared, chain, data, replaced)
        effects, calls = calldata.decode(to, value, data, chain.id, facts.address.lower())
        fee = Effect("fee", EVM_NATIVE, gas_limit * max_fee, from_=facts.address.lower(), label="at most")

        def finish() -> Final:
            if order.broadcast and prepared is None:
                raise NeedsNode
            nonce = _nonce(order, prepared, facts) if replaced is None else replaced.transaction.nonce
            transaction = EvmTransaction(
                chain_id=chain.id, nonce=nonce, gas_limit=gas_limit, max_fee=max_fee, priority_fee=priority, to=to,
                value=value,
                data=data, legacy=_is_legacy(prepared, replaced),
            )  # fmt: skip
            return Final(nonce, lambda secret: _unlock_evm(secret, transaction))

        return Built(
            kind="evm", to_address=checksum(to), value=order.value, data=order.data, chain=chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id, fee=fee, finish=finish,
            subject=Subject("evm", "evm", chain.id, chain.caip2, to, (*effects, fee), calls),
        )  # fmt: skip

    return Draft(
        kind="evm", purpose="evm", order_text=text, digest=digest_of("evm", text.encode()), chain=chain,
        broadcast=order.broadcast,
        pending_nonce=min(prepared.pending_nonce, MAX_NONCE) if prepared else None, nonce=order.nonce,
        takes_open_slot=order.broadcast and order.nonce is None, replaces=replaced.tx_id if replaced else None,
        build=build,
    )  # fmt: skip


def _check_same(before: EvmTransaction, order: tuple[int, int | None, str, int, bytes]) -> None:
    """A replacement that did something else would be another payment, whatever was judged before."""
    if (before.chain_id, before.nonce, before.to, before.value, before.data) != order:
        raise Tampered


def _check_replaced(replaced: Replaced, facts: Facts) -> None:
    """The bytes must be this wallet's, and their nonce still theirs (promise P2)."""
    if replaced.sender != facts.address:
        raise Tampered
    if facts.slot is None or facts.slot.state == "seen":
        raise NonceUsed("The chain has used this nonce; nothing is left to replace.", code="transaction_final")
    if facts.slot.tx_id != replaced.tx_id:
        raise AlreadyReplaced(f"Transaction {facts.slot.tx_id} has replaced this one; replace that.")


def _is_legacy(prepared: EvmPrepared | None, replaced: Replaced | None) -> bool:
    # The two kinds pay in different ways; what is replaced by its own kind can be compared by its nodes.
    if replaced is not None:
        return replaced.transaction.legacy
    return prepared.legacy if prepared else False


def _unlock_evm(secret: bytes, transaction: EvmTransaction) -> Unlocked:
    # One key object serves the address check and the signature; building it twice costs as much as signing.
    key = coincurve.PrivateKey(secret)

    def sign() -> Produced:
        signed = sign_evm(transaction, key)
        return Produced(signed.hash, signed.hash, signed.raw)

    return Unlocked(evm_address(key), sign)


def evm_address(key: coincurve.PrivateKey) -> str:
    """The checksummed address of a key."""
    return address_of(key.public_key.format(compressed=False))


def _caller_fees(order: EvmOrder, chain: Chain) -> None:
    """A caller's own gas or fee above a cap is the caller's mistake; a node's is lowered instead."""
    limits = (
        ("maxFeePerGas", order.max_fee_per_gas, chain.max_fee_per_gas),
        ("maxPriorityFeePerGas", order.max_priority_fee_per_gas, chain.max_priority_fee_per_gas),
        ("gasLimit", order.gas_limit, 2**63 - 1),
    )
    for name, asked, cap in limits:
        if asked is not None and int(asked) > cap:
            raise FeeAboveCap(f"{name} {asked} is above the cap of {cap} for {chain.name}.")
    if order.gas_limit is not None and int(order.gas_limit) < 21_000:
        raise Invalid("gasLimit must be at least 21000.", code="gas_limit_too_low")


def _fees(
    order: EvmOrder, prepared: EvmPrepared | None, chain: Chain, data: bytes, replaced: Replaced | None
) -> tuple[int, int, int]:
    """Gas limit, fee and priority fee per gas, all within the chain's caps."""
    if replaced is not None:
        by_node = (prepared.gas_limit, prepared.max_fee, prepared.priority_fee) if prepared else (0, 0, 0)
        asked = order.max_fee_per_gas, order.max_priority_fee_per_gas
        return raised_fees(replaced.transaction, asked, by_node, chain)
    plain_gas = 21_000 if prepared is not None and not data else chain.default_gas
    gas_limit = int(order.gas_limit) if order.gas_limit else (prepared.gas_limit if prepared else plain_gas)
    gas_limit = max(gas_limit, 21_000)
    suggested = prepared.max_fee if prepared else chain.default_max_fee_per_gas
    max_fee = int(order.max_fee_per_gas) if order.max_fee_per_gas else min(suggested, chain.max_fee_per_gas)
    if gas_limit * max_fee > chain.max_fee_per_transaction:
        if order.max_fee_per_gas or order.gas_limit:
            raise FeeAboveCap(
                f"{gas_limit} gas at {max_fee} wei is {gas_limit * max_fee} wei, above the cap of "
                f"{chain.max_fee_per_transaction} for one transaction on {chain.name}."
            )
        max_fee = chain.max_fee_per_transaction // gas_limit
    tip = prepared.priority_fee if prepared else chain.default_priority_fee_per_gas
    priority = (
        int(order.max_priority_fee_per_gas)
        if order.max_priority_fee_per_gas
        else min(tip, chain.max_priority_fee_per_gas)
    )
    return gas_limit, max_fee, min(priority, max_fee)


def _nonce(order: EvmOrder, prepared: EvmPrepared | None, facts: Facts) -> int:
    """The slot this order takes. Design 6 has the rules, decisions 4 their statuses."""
    pending = prepared.pending_nonce if prepared else 0
    known = 0 if facts.highest_nonce is None else facts.highest_nonce + 1
    # Whoever may name any nonce could use up all of them with one signature, and the wallet would be dead.
    if max(pending, order.nonce or 0) > known + MAX_AHEAD:
        raise NonceImplausible(f"Nonce {max(pending, order.nonce or 0)} is more than {MAX_AHEAD} ahead of {known}.")
    first_new = max(pending, known)
    if order.nonce is None:
        return facts.slot.nonce if facts.slot is not None else first_new
    if order.nonce < pending:
        raise NonceUsed(f"Nonce {order.nonce} is used on chain; the next one is {pending}.")
    if facts.slot is not None and facts.slot.state != "open":
        raise NonceTaken(f"Nonce {order.nonce} belongs to transaction {facts.slot.tx_id}, which was sent.")
    if facts.slot is None and order.broadcast and order.nonce > first_new:
        raise NonceGap(f"Nonce {order.nonce} leaves a gap; the next one is {first_new}.")
    return order.nonce
