"""Solana messages: every instruction recognised, declared and real effect equal."""

import base64
from collections.abc import Mapping
from typing import Any

from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey

from custody.chains.families import caip2
from custody.chains.family import Chain
from custody.chains.solana import effects as solana_effects
from custody.chains.solana import message as solana_message
from custody.chains.solana import sign as solana_sign
from custody.chains.solana.message import SolanaTransaction
from custody.chains.solana.orders import SolanaOrder, SolanaPrepared
from custody.chains.types import Effect
from custody.protocol.signer.refusals import ApprovalStale
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.kind import (
    Decoded,
    Draft,
    Final,
    Inputs,
    NeedsNode,
    OrderKind,
    Produced,
    chain_of,
    digest_of,
    text_of,
)
from signer.wallets.solana import SOLANA_KEYS


class SolanaDraft(Draft, frozen=True, kw_only=True):
    """A message taken apart, and what its caller says that it does."""

    order: SolanaOrder
    prepared: SolanaPrepared | None
    approving: bool
    chain: Chain
    parsed: SolanaTransaction


class SolanaFinal(Final, frozen=True, kw_only=True):
    """The message, and the blockhash that replaces its own, if any."""

    parsed: SolanaTransaction
    blockhash: str | None


class SolanaTransactionKind(OrderKind[SolanaOrder, SolanaDraft, Decoded, SolanaFinal, Keypair]):
    """`POST /vault/{agentId}/sign-solana`."""

    name = "solana"
    keys = SOLANA_KEYS
    permissions = frozenset({"solana_transaction", "sign_transaction"})

    def check(self, order: SolanaOrder, inputs: Inputs) -> SolanaDraft:
        """Take the message apart strictly."""
        chain = chain_of(inputs.chains, order.chain_id, "solana")
        parsed = solana_message.parse(order.transaction)
        declared = f":{order.to}:{order.value}:{chain.id}:{order.broadcast}".encode()
        return SolanaDraft(
            order_text=text_of(order),
            digest=digest_of("solana", solana_message.digest_bytes(parsed) + declared),
            chain=chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id,
            to_address=order.to,
            value=order.value,
            data=order.transaction,
            order=order,
            prepared=inputs.prepared if isinstance(inputs.prepared, SolanaPrepared) else None,
            approving=inputs.approving,
            parsed=parsed,
        )

    def effects(self, draft: SolanaDraft, facts: Facts) -> Decoded:
        """Decode what the instructions do, which must be what the caller says."""
        order, chain = draft.order, draft.chain
        subject = solana_effects.subject_of(draft.parsed, facts.address, chain.id, caip2(chain), order.to)
        if draft.broadcast:
            solana_effects.check_sendable(draft.parsed, facts.address)
        solana_effects.check_declared(subject, facts.address, order.to, int(order.value))
        solana_effects.check_fees(subject, chain.max_fee_per_transaction)
        fee = next((effect for effect in subject.effects if effect.label == "network fee"), None)
        return Decoded(subject=subject, fee=fee)

    def finish(self, draft: SolanaDraft, decoded: Decoded, facts: Facts) -> SolanaFinal:
        """Renew the blockhash of an order that waited for a person."""
        if draft.broadcast and draft.prepared is None:
            raise NeedsNode
        return SolanaFinal(parsed=draft.parsed, blockhash=_blockhash(draft, facts.address) if draft.approving else None)

    def sign(self, final: SolanaFinal, key: Keypair) -> Produced:
        """Sign the message."""
        signature, raw = solana_sign.sign(final.parsed, key, final.blockhash)
        return Produced(solana_message.id_of(raw), signature, raw)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed message, and check the signature in it."""
        parsed = solana_message.parse(base64.b64encode(row["signed_bytes"]).decode())
        us = Pubkey.from_string(address)
        made = parsed.signatures[parsed.signers.index(us)]
        known_by = (str(made), solana_message.id_of(row["signed_bytes"]))
        signed = made.verify(us, to_bytes_versioned(parsed.message)) and str(made) == row["signature"]
        if not signed or row["tx_hash"] not in known_by:
            raise Tampered
        return solana_effects.subject_of(parsed, address, row["chain_id"], row["caip2"], row["to_address"]).effects


SOLANA_TRANSACTION = SolanaTransactionKind()


def _blockhash(draft: SolanaDraft, address: str) -> str | None:
    """An approval may come hours after the order; its blockhash has expired by then."""
    if not draft.parsed.renewable(Pubkey.from_string(address)):
        raise ApprovalStale
    return draft.prepared.blockhash if draft.prepared else None
