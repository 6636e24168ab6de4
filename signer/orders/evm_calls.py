"""A batch of calls: judged as one order, signed as one transaction for each call, with nonces that follow each other.

All of them are in the ledger or none is. On the chain each stands alone: one that reverts stops no other.
"""

from collections.abc import Mapping
from typing import Any

import coincurve
import msgspec

from custody.chains.actions import WalletAction
from custody.chains.evm import calls
from custody.chains.evm.action_orders import CallsOrder, CallsPrepared
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.orders import EvmPrepared
from custody.chains.families import caip2
from custody.chains.types import Effect, Subject
from custody.intents import payloads
from custody.protocol.signer.refusals import NonceOpen, UnsupportedChain
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders import evm
from signer.orders.evm import EvmDecoded, EvmDraft, EvmFinal
from signer.orders.kind import (
    Decoded,
    Draft,
    Final,
    Inputs,
    NonceRequest,
    OrderKind,
    Produced,
)
from signer.wallets.evm import EVM_KEYS


class CallsDraft(Draft, frozen=True, kw_only=True):
    """The batch, and each of its transactions."""

    order: CallsOrder
    parts: tuple[EvmDraft, ...]
    # What becomes of a call that no contract-allowlist lists is the deployment's to say.
    unsafe: bool


class CallsDecoded(Decoded, frozen=True, kw_only=True):
    """The effects of each of them."""

    parts: tuple[EvmDecoded, ...]


class CallsFinal(Final, frozen=True, kw_only=True):
    """Each of them, to the last field."""

    parts: tuple[EvmFinal, ...]


class EvmCallsKind(OrderKind[CallsOrder, CallsDraft, CallsDecoded, CallsFinal, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/actions/send-calls`."""

    name = "evm"
    keys = EVM_KEYS
    needs_signer = True
    permissions = frozenset({"send_calls"})

    def check(self, order: CallsOrder, inputs: Inputs) -> CallsDraft:
        """Each call as a transaction, all of them on one chain."""
        chain = inputs.chains.active if order.chain_id is None else inputs.chains.find(order.chain_id)
        if chain is not None and chain.family != "evm":
            raise UnsupportedChain(f"Calls are sent on EVM chains, and {chain.name} ({chain.id}) is none.")
        prepared = _prepared_parts(inputs, len(order.calls))
        transactions = calls.transactions(order)
        parts = tuple(evm.check(one, node, inputs.chains) for one, node in zip(transactions, prepared, strict=True))
        first = parts[0]
        order = msgspec.structs.replace(order, chain_id=first.order.chain_id)
        text = payloads.text_of("wallet_action", order)
        return CallsDraft(
            order_text=text,
            # The same as that of its intent: who asks twice under one reference must ask for the same.
            digest=payloads.digest_of("wallet_action", text),
            chain=first.chain,
            broadcast=order.broadcast,
            reference_id=order.reference_id,
            to_address=None,
            value=None,
            data=None,
            # A nonce that was signed for and never sent: the batch would wait behind it, so it is read too.
            nonce=_nonce(first, broadcast=order.broadcast),
            action=WalletAction("send_calls"),
            orders=len(parts),
            order=order,
            parts=parts,
            unsafe=inputs.unsafe_calls,
        )

    def effects(self, draft: CallsDraft, facts: Facts) -> CallsDecoded:
        """Decode what all of them do together."""
        parts = tuple(evm.EVM_TRANSACTION.effects(part, facts) for part in draft.parts)
        subjects = tuple(part.subject for part in parts)
        fee = Effect(
            "fee",
            EVM_NATIVE,
            sum(part.fee.amount for part in parts if part.fee is not None),
            from_=facts.address.lower(),
            label="at most",
        )
        chain = draft.parts[0].chain
        return CallsDecoded(
            subject=Subject(
                "evm",
                "evm",
                chain.id,
                caip2(chain),
                None,
                tuple(effect for subject in subjects for effect in subject.effects),
                tuple(call for subject in subjects for call in subject.calls),
                parts=subjects,
                vouched="queue" if draft.unsafe else "refuse",
            ),
            fee=fee,
            parts=parts,
        )

    def finish(self, draft: CallsDraft, decoded: CallsDecoded, facts: Facts) -> CallsFinal:
        """Choose the nonces; NonceOpen while an earlier order holds one that was never sent."""
        for part in draft.parts:
            evm.need_node(part)
        if facts.slot is not None:
            raise NonceOpen(
                f"Nonce {facts.slot.nonce} was signed for transaction {facts.slot.tx_id}, which was not broadcast, and "
                "the batch would wait behind it: send or replace that one first."
            )
        finals: list[EvmFinal] = []
        for part, one in zip(draft.parts, decoded.parts, strict=True):
            final = evm.EVM_TRANSACTION.finish(part, one, facts)
            finals.append(final)
            # As the ledger will say once that one is written.
            facts = msgspec.structs.replace(facts, highest_nonce=final.nonce)
        return CallsFinal(parts=tuple(finals), nonce=finals[0].nonce)

    def sign(self, final: CallsFinal, key: coincurve.PrivateKey) -> Produced:
        """Never: each of its transactions is signed by itself."""
        raise Tampered

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Never: what is stored of a batch is its transactions."""
        raise Tampered


EVM_CALLS = EvmCallsKind()


def _prepared_parts(inputs: Inputs, number: int) -> list[EvmPrepared | None]:
    """Find what a node said for each call."""
    given = inputs.prepared
    if not isinstance(given, CallsPrepared) or len(given.gas_limits) != number:
        return [None] * number
    default = given.first.gas_limit
    return [
        msgspec.structs.replace(given.first, gas_limit=default if limit is None else limit)
        for limit in given.gas_limits
    ]


def _nonce(first: EvmDraft, *, broadcast: bool) -> NonceRequest | None:
    return None if first.nonce is None else msgspec.structs.replace(first.nonce, takes_open_slot=broadcast)
