"""From an order to what would be signed: built from fields, decoded for its effects. Promise P6.

Whatever a node suggested is capped by the chain table; whatever the caller says is checked against the bytes.
"""

import hashlib
from collections.abc import Callable

import coincurve
import msgspec
from solders.keypair import Keypair

from custody.chains.evm import calldata, typed_data, typed_effects
from custody.chains.evm.address import address_of, checksum, parse_address
from custody.chains.evm.signature import sign_digest
from custody.chains.evm.transaction import EvmTransaction
from custody.chains.evm.transaction import sign as sign_evm
from custody.chains.orders import EvmOrder, EvmPrepared, SolanaOrder, SolanaPrepared, TypedDataOrder
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.solana import sign as solana_sign
from custody.chains.table import Chain, ChainTable
from custody.chains.types import EVM_NATIVE, Effect, Subject
from custody.kit.errors import Conflict, Invalid
from custody.kit.shapes import MAX_UINT256
from custody.transactions.ledger import Facts


class UnknownChain(Invalid):
    """This chain is not configured here."""


class FeeAboveCap(Invalid):
    """The fee asked for is above this chain's cap."""


class NonceTaken(Conflict):
    """This nonce was already used for a transaction that was sent."""


class NonceUsed(Conflict):
    """The chain has already used this nonce."""


class NonceGap(Invalid):
    """A transaction with this nonce could not be mined, because lower nonces are missing."""


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
    build: Callable[[Facts], Built]


def draft(
    order: EvmOrder | TypedDataOrder | SolanaOrder,
    prepared: EvmPrepared | SolanaPrepared | None,
    chains: ChainTable,
    *,
    approving: bool = False,
) -> Draft:
    """Check an order by itself; raises Invalid with what to change."""
    if isinstance(order, EvmOrder):
        return _draft_evm(order, prepared if isinstance(prepared, EvmPrepared) else None, chains)
    if isinstance(order, TypedDataOrder):
        return _draft_typed_data(order)
    return _draft_solana(order, prepared if isinstance(prepared, SolanaPrepared) else None, chains, approving=approving)


def _chain(chains: ChainTable, chain_id: int | None, family: str) -> Chain:
    chain = chains.active if chain_id is None else chains.find(chain_id)
    if chain is None or chain.family != family:
        raise UnknownChain(
            f"Chain {chain_id if chain_id is not None else chains.active.id} is not an {family.upper()} chain "
            "known here."
        )
    return chain


def _text(order: msgspec.Struct) -> str:
    return msgspec.json.encode(order, order="deterministic").decode()


def _digest(kind: str, content: bytes) -> bytes:
    return hashlib.sha256(b"custody-order-v1:" + kind.encode() + b":" + content).digest()


# ---------------------------------------------------------------- EVM


def _draft_evm(order: EvmOrder, prepared: EvmPrepared | None, chains: ChainTable) -> Draft:
    chain = _chain(chains, order.chain_id, "evm")
    to = parse_address(order.to)
    value = int(order.value)
    if value > MAX_UINT256:
        raise Invalid("value is larger than 2^256 - 1.", code="value_out_of_range")
    data = bytes.fromhex((order.data or "").removeprefix("0x"))
    _caller_fees(order, chain)
    text = _text(order)

    def build(facts: Facts) -> Built:
        gas_limit, max_fee, priority = _fees(order, prepared, chain, data)
        effects, calls = calldata.decode(to, value, data, chain.id, facts.address.lower())
        fee = Effect("fee", EVM_NATIVE, gas_limit * max_fee, from_=facts.address, label="at most")

        def finish() -> Final:
            if order.broadcast and prepared is None:
                raise NeedsNode
            nonce = _nonce(order, prepared, facts)
            transaction = EvmTransaction(
                chain_id=chain.id, nonce=nonce, gas_limit=gas_limit, max_fee=max_fee, priority_fee=priority, to=to,
                value=value,
                data=data, legacy=prepared.legacy if prepared else False,
            )  # fmt: skip
            return Final(nonce, lambda secret: _unlock_evm(secret, transaction))

        return Built(
            kind="evm", to_address=checksum(to), value=order.value, data=order.data, chain=chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id, fee=fee, finish=finish,
            subject=Subject("evm", "evm", chain.id, chain.caip2, to, (*effects, fee), calls),
        )  # fmt: skip

    return Draft(
        kind="evm", purpose="evm", order_text=text, digest=_digest("evm", text.encode()), chain=chain,
        broadcast=order.broadcast,
        pending_nonce=prepared.pending_nonce if prepared else None, nonce=order.nonce,
        takes_open_slot=order.broadcast and order.nonce is None, build=build,
    )  # fmt: skip


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


def _fees(order: EvmOrder, prepared: EvmPrepared | None, chain: Chain, data: bytes) -> tuple[int, int, int]:
    """Gas limit, fee and priority fee per gas, all within the chain's caps."""
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
    first_new = max(pending, -1 if facts.highest_nonce is None else facts.highest_nonce + 1, 0)
    if order.nonce is None:
        return facts.slot.nonce if facts.slot is not None else first_new
    if order.nonce < pending:
        raise NonceUsed(f"Nonce {order.nonce} is used on chain; the next one is {pending}.")
    if facts.slot is not None and facts.slot.state != "open":
        raise NonceTaken(f"Nonce {order.nonce} belongs to transaction {facts.slot.tx_id}, which was sent.")
    if facts.slot is None and order.broadcast and order.nonce > first_new:
        raise NonceGap(f"Nonce {order.nonce} leaves a gap; the next one is {first_new}.")
    return order.nonce


# ---------------------------------------------------------------- typed data


def _draft_typed_data(order: TypedDataOrder) -> Draft:
    digest = typed_data.digest(order)
    text = _text(order)

    def build(facts: Facts) -> Built:
        subject = typed_effects.subject_of(order, facts.address)
        return Built(
            kind="typed_data",
            to_address=checksum(subject.verifying_contract) if subject.verifying_contract else None, value=None,
            data=_text(msgspec.structs.replace(order, reference_id=None)), chain=None, broadcast=False,
            reference_id=order.reference_id,
            fee=None, finish=lambda: Final(None, unlock), subject=subject,
        )  # fmt: skip

    def unlock(secret: bytes) -> Unlocked:
        key = coincurve.PrivateKey(secret)
        return Unlocked(evm_address(key), lambda: Produced(None, "0x" + sign_digest(digest, key).compact.hex(), None))

    return Draft(
        kind="typed_data",
        purpose="evm",
        order_text=text,
        digest=_digest("typed_data", text.encode()),
        chain=None,
        broadcast=False,
        build=build,
    )


# ---------------------------------------------------------------- Solana


def _draft_solana(order: SolanaOrder, prepared: SolanaPrepared | None, chains: ChainTable, *, approving: bool) -> Draft:
    chain = _chain(chains, order.chain_id, "solana")
    parsed = solana_message.parse(order.transaction)
    text = _text(order)
    identity = solana_message.digest_bytes(parsed) + f":{order.to}:{order.value}:{chain.id}:{order.broadcast}".encode()

    def build(facts: Facts) -> Built:
        subject = solana_effects.subject_of(parsed, facts.address, chain.id, chain.caip2, order.to)
        solana_effects.check_declared(subject, order.to, int(order.value))
        solana_effects.check_fees(subject, chain.max_fee_per_transaction)
        fees = [effect for effect in subject.effects if effect.kind == "fee"]

        def finish() -> Final:
            if order.broadcast and prepared is None:
                raise NeedsNode
            blockhash = _blockhash(parsed.sole_signer, prepared) if approving else None
            return Final(None, lambda secret: _unlock_solana(secret, parsed, blockhash))

        return Built(
            kind="solana", to_address=order.to, value=order.value, data=order.transaction, chain=chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id, fee=fees[0] if fees else None, subject=subject, finish=finish,
        )  # fmt: skip

    return Draft(
        kind="solana",
        purpose="solana",
        order_text=text,
        digest=_digest("solana", identity),
        chain=chain,
        broadcast=order.broadcast,
        build=build,
    )


class ApprovalStale(Conflict):
    """Others have signed this message too, so its blockhash cannot be renewed; the agent must ask again."""


def _blockhash(sole_signer: bool, prepared: SolanaPrepared | None) -> str | None:
    """An approval may come hours after the order; its blockhash has expired by then."""
    if not sole_signer:
        raise ApprovalStale
    return prepared.blockhash if prepared else None


def _unlock_solana(secret: bytes, parsed: solana_message.SolanaTransaction, blockhash: str | None) -> Unlocked:
    def sign() -> Produced:
        signature, raw = solana_sign.sign(parsed, secret, blockhash)
        return Produced(signature, signature, raw)

    return Unlocked(str(Keypair.from_seed(secret).pubkey()), sign)
