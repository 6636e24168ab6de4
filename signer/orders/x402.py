"""Payments that a server demands by x402: what is signed is built here, from one offer, and judged as if it were sent.

Nobody else chooses nonce, validity or spender. The same order gives the same payment: its nonce is a MAC of its id.
What a person approves is the offer; the document is built when it is signed.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import coincurve
import msgspec
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey

from custody.chains.evm import typed_data, typed_effects
from custody.chains.evm.address import ZERO_ADDRESS, address_of, checksum
from custody.chains.evm.typed_data import Document
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.families import caip2
from custody.chains.payment_orders import EvmPaymentOrder, PaymentOrder, SolanaPaymentOrder
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.solana import sign as solana_sign
from custody.chains.solana.message import SolanaTransaction, SolanaUnsupported
from custody.chains.solana.orders import SolanaPrepared
from custody.chains.solana.programs import SYSTEM
from custody.chains.types import Effect, Subject
from custody.payments import evm_payment, solana_payment
from custody.payments.header import header
from custody.payments.limits import Limits
from custody.payments.offers import Terms
from custody.payments.orders import terms_in
from custody.payments.refusals import OfferUnpayable, PaymentRefused
from custody.protocol.signer.outcomes import PaymentReleased
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.kind import (
    Decoded,
    Draft,
    Inputs,
    NeedsNode,
    OrderKind,
    Produced,
    digest_of,
    text_of,
)
from signer.orders.kind import Final as Fixed
from signer.wallets.evm import EVM_KEYS
from signer.wallets.solana import SOLANA_KEYS

# Seconds for which a payment that a person approved can be used: its agent comes back for it.
APPROVED_SECONDS: Final = 600
# Seconds after which a cluster takes a blockhash no more, at the latest.
_BLOCKHASH_SECONDS: Final = 90


class PaymentDraft(Draft, frozen=True, kw_only=True):
    """An offer that was understood. `named` says that a payment route vouches for whom it pays."""

    order: PaymentOrder
    terms: Terms
    nonce_bytes: bytes
    approving: bool
    named: bool
    blockhash: str | None = None


class EvmPaymentDecoded(Decoded, frozen=True, kw_only=True):
    """The document that was built, and its effects."""

    order: TypedDataOrder
    document: Document


class SolanaPaymentDecoded(Decoded, frozen=True, kw_only=True):
    """The transaction that was built, and its effects."""

    parsed: SolanaTransaction


class PaymentFixed(Fixed, frozen=True, kw_only=True):
    """All that the signature and the header are made of."""

    draft: PaymentDraft
    wallet: str
    until: int
    made: TypedDataOrder | SolanaTransaction


class EvmPaymentKind(OrderKind[EvmPaymentOrder, PaymentDraft, EvmPaymentDecoded, PaymentFixed, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/x402` by the EVM wallet."""

    name = "x402"
    keys = EVM_KEYS
    permissions = frozenset({"sign_typed_data"})

    def check(self, order: EvmPaymentOrder, inputs: Inputs) -> PaymentDraft:
        """Read the offer, and hold it to the route that it came by."""
        return _draft(self.name, order, inputs)

    def effects(self, draft: PaymentDraft, facts: Facts) -> EvmPaymentDecoded:
        """Build the document and decode it, as one that was sent."""
        wallet = facts.address.lower()
        _check_payee(draft.terms, wallet, ZERO_ADDRESS)
        order = evm_payment.document(draft.terms, wallet, draft.nonce_bytes, _until(draft, facts))
        document = typed_data.read(order)
        subject = typed_effects.subject_of(document, facts.address)
        return EvmPaymentDecoded(subject=_demand_name(subject, draft), fee=None, order=order, document=document)

    def finish(self, draft: PaymentDraft, decoded: EvmPaymentDecoded, facts: Facts) -> PaymentFixed:
        """Nothing is left to fix."""
        return PaymentFixed(draft=draft, wallet=facts.address, until=_until(draft, facts), made=decoded.order)

    def sign(self, final: PaymentFixed, key: coincurve.PrivateKey) -> Produced:
        """Sign the document, and make the header that carries it."""
        assert isinstance(final.made, TypedDataOrder)  # noqa: S101 - made so by `finish`
        signature = typed_data.sign(final.made, key)
        raw = msgspec.json.encode(final.made, order="deterministic")
        payload = evm_payment.payload(final.made, final.wallet, signature)
        return Produced(None, signature, raw, payment=_release(final, payload))

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the stored document, and recover the key from its signature."""
        document = typed_data.read(msgspec.json.decode(row["signed_bytes"], type=TypedDataOrder))
        made = bytes.fromhex(row["signature"].removeprefix("0x"))
        key = coincurve.PublicKey.from_signature_and_message(
            made[:64] + bytes((made[64] - 27,)), typed_data.digest_of(document), hasher=None
        )
        if address_of(key.format(compressed=False)) != address:
            raise Tampered
        return typed_effects.subject_of(document, address).effects


class SolanaPaymentKind(OrderKind[SolanaPaymentOrder, PaymentDraft, SolanaPaymentDecoded, PaymentFixed, Keypair]):
    """`POST /vault/{agentId}/x402` by the Solana wallet; a sponsor pays the fee and signs last."""

    name = "solana_x402"
    keys = SOLANA_KEYS
    permissions = frozenset({"solana_transaction", "sign_transaction"})

    def check(self, order: SolanaPaymentOrder, inputs: Inputs) -> PaymentDraft:
        """Read the offer, and hold it to the route that it came by."""
        draft = _draft(self.name, order, inputs)
        prepared = inputs.prepared if isinstance(inputs.prepared, SolanaPrepared) else None
        # The server's own serves as well: a bad one makes a payment that nobody can settle.
        told = None if inputs.approving else draft.terms.blockhash
        return msgspec.structs.replace(draft, blockhash=prepared.blockhash if prepared else told)

    def effects(self, draft: PaymentDraft, facts: Facts) -> SolanaPaymentDecoded:
        """Build the transaction and decode it, as one that was sent."""
        terms = draft.terms
        _check_payee(terms, facts.address, str(SYSTEM))
        if terms.third == facts.address:
            raise PaymentRefused("The offer wants this wallet to pay the fee, which its sponsor pays in x402.")
        built = solana_payment.transaction(terms, facts.address, draft.nonce_bytes, draft.blockhash)
        parsed = solana_message.parse(built)
        chain = terms.chain
        try:
            subject = solana_effects.subject_of(parsed, facts.address, chain.id, caip2(chain), terms.pay_to)
        except SolanaUnsupported:
            # Whom the offer has pay the fee is an account of this wallet's.
            raise OfferUnpayable from None
        return SolanaPaymentDecoded(subject=_demand_name(subject, draft), fee=None, parsed=parsed)

    def finish(self, draft: PaymentDraft, decoded: SolanaPaymentDecoded, facts: Facts) -> PaymentFixed:
        """Demand a recent blockhash: without it nothing could be settled."""
        if draft.blockhash is None:
            raise NeedsNode
        until = int(facts.now.timestamp()) + _BLOCKHASH_SECONDS
        return PaymentFixed(draft=draft, wallet=facts.address, until=until, made=decoded.parsed)

    def sign(self, final: PaymentFixed, key: Keypair) -> Produced:
        """Sign the message, and make the header that carries the transaction."""
        assert isinstance(final.made, SolanaTransaction)  # noqa: S101 - made so by `finish`
        signature, raw = solana_sign.sign(final.made, key, None)
        return Produced(None, signature, raw, payment=_release(final, solana_payment.payload(raw)))

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed message, and check the signature in it."""
        parsed = solana_message.parse(base64.b64encode(row["signed_bytes"]).decode())
        us = Pubkey.from_string(address)
        made = parsed.signatures[parsed.signers.index(us)]
        if not made.verify(us, to_bytes_versioned(parsed.message)) or str(made) != row["signature"]:
            raise Tampered
        return solana_effects.subject_of(parsed, address, row["chain_id"], row["caip2"], row["to_address"]).effects


EVM_PAYMENT = EvmPaymentKind()
SOLANA_PAYMENT = SolanaPaymentKind()


def _draft(kind: str, order: PaymentOrder, inputs: Inputs) -> PaymentDraft:
    terms = terms_in(order, inputs.chains)
    limits = inputs.limits if isinstance(inputs.limits, Limits) else None
    if limits is not None and (problem := limits.problem_of(terms)) is not None:
        raise PaymentRefused(problem)
    text = text_of(order)
    shown = {
        "offer": msgspec.Raw(order.offer.encode()),
        "method": order.method,
        "host": order.host,
        "path": order.path,
        "description": order.words,
    }
    return PaymentDraft(
        order_text=text,
        digest=digest_of(kind, text.encode()),
        chain=None,
        broadcast=False,
        reference_id=order.reference_id,
        to_address=checksum(terms.pay_to) if terms.chain.family == "evm" else terms.pay_to,
        value=None,
        data=msgspec.json.encode({name: value for name, value in shown.items() if value is not None}).decode(),
        order=order,
        terms=terms,
        nonce_bytes=inputs.unique,
        approving=inputs.approving,
        named=limits is not None and limits.names_payee,
    )


def _check_payee(terms: Terms, wallet: str, nobody: str) -> None:
    if terms.pay_to in (nobody, wallet):
        whom = "this agent's own wallet" if terms.pay_to == wallet else "nobody"
        raise PaymentRefused(f"The offer wants {whom} to be paid: the server has to name somebody else.")


def _demand_name(subject: Subject, draft: PaymentDraft) -> Subject:
    """The subject that is judged: whom it pays is to be named, by a rule unless the route did."""
    return msgspec.structs.replace(subject, named=not draft.named)


def _until(draft: PaymentDraft, facts: Facts) -> int:
    return int(facts.now.timestamp()) + (APPROVED_SECONDS if draft.approving else draft.terms.seconds)


def _release(final: PaymentFixed, payload: Mapping[str, Any]) -> PaymentReleased:
    draft = final.draft
    name, value = header(draft.order, draft.terms, payload, draft.nonce_bytes)
    return PaymentReleased(name, value, draft.terms.asset, str(draft.terms.amount), final.until)
