"""A stuck EVM transaction again: the same payment and nonce, and fees that nodes take in place of it.

Nodes take a replacement only if both fees are at least a tenth higher. What is replaced is read from the bytes that
this service signed, whose signature proves them, and never from the row beside them.
"""

from collections.abc import Mapping
from typing import Any

import coincurve
import msgspec

from custody.chains.evm.action_orders import EvmReplacement
from custody.chains.evm.orders import EvmPrepared
from custody.chains.evm.transaction import EvmTransaction
from custody.chains.types import Effect
from custody.protocol.signer.order_refusals import FeeAboveCap, FeeTooLow
from custody.protocol.signer.refusals import AlreadyReplaced, TransactionFinal
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.evm import (
    EvmDecoded,
    EvmDraft,
    EvmFinal,
    Fees,
    check,
    check_tip,
    decode,
    final,
    need_node,
    sign,
    signed_effects,
)
from signer.orders.kind import Inputs, OrderKind, Produced, Replaced
from signer.wallets.evm import EVM_KEYS


class ReplacementDraft(EvmDraft, frozen=True, kw_only=True):
    """A replacement, and what it replaces."""

    replaced: Replaced


class EvmReplacementKind(OrderKind[EvmReplacement, ReplacementDraft, EvmDecoded, EvmFinal, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/transactions/{txId}/replace`."""

    name = "evm"
    keys = EVM_KEYS
    permissions = frozenset({"sign_transaction"})

    def check(self, order: EvmReplacement, inputs: Inputs) -> ReplacementDraft:
        """As a transaction; and it must be the very payment that it replaces."""
        replaced = inputs.replaced
        if replaced is None:
            raise Tampered
        prepared = inputs.prepared if isinstance(inputs.prepared, EvmPrepared) else None
        draft = check(order, prepared, inputs.chains, replaces=replaced.tx_id)
        _check_same(replaced.transaction, draft)
        return ReplacementDraft(**msgspec.structs.asdict(draft), replaced=replaced)

    def effects(self, draft: ReplacementDraft, facts: Facts) -> EvmDecoded:
        """Decode what the payment does, at the raised fees."""
        _check_replaceable(draft.replaced, facts)
        return decode(draft, facts, _raised_fees(draft))

    def finish(self, draft: ReplacementDraft, decoded: EvmDecoded, facts: Facts) -> EvmFinal:
        """Take the nonce of what is replaced."""
        need_node(draft)
        before = draft.replaced.transaction
        # The two kinds pay in different ways; what is replaced by its own kind can be compared by its nodes.
        return final(draft, decoded.fees, before.nonce, legacy=before.legacy)

    def sign(self, final: EvmFinal, key: coincurve.PrivateKey) -> Produced:
        """Encode and sign."""
        return sign(final, key)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed bytes."""
        return signed_effects(row, address)


EVM_REPLACEMENT = EvmReplacementKind()


def _check_same(before: EvmTransaction, draft: EvmDraft) -> None:
    """A replacement that did something else would be another payment, whatever was judged before."""
    order = (draft.chain.id, draft.order.nonce, draft.to, draft.amount, draft.calldata)
    if (before.chain_id, before.nonce, before.to, before.value, before.data) != order:
        raise Tampered


def _check_replaceable(replaced: Replaced, facts: Facts) -> None:
    """The bytes must be this wallet's, and their nonce still theirs (promise P2)."""
    if replaced.sender != facts.address:
        raise Tampered
    if facts.slot is None or facts.slot.state == "seen":
        raise TransactionFinal
    if facts.slot.tx_id != replaced.tx_id:
        raise AlreadyReplaced(f"Transaction {facts.slot.tx_id} has replaced this one; replace that.")


def _raised_fees(draft: ReplacementDraft) -> Fees:
    """The gas limit as it was; fee and priority fee at least a tenth above those replaced, and within the caps."""
    before, order, node, chain = draft.replaced.transaction, draft.order, draft.prepared, draft.chain
    gas_limit, floor = before.gas_limit, chain.min_priority_fee_per_gas
    cap = min(chain.max_fee_per_gas, chain.max_fee_per_transaction // gas_limit)
    asked = order.max_priority_fee_per_gas
    suggested = max(node.max_fee if node else 0, floor, int(asked or 0))
    max_fee = raise_fee("maxFeePerGas", before.max_fee, order.max_fee_per_gas, suggested, cap)
    check_tip(order, chain, legacy=before.legacy)
    if before.legacy:
        return Fees(gas_limit, max_fee, 0)
    tip, tip_cap = max(node.priority_fee if node else 0, floor), min(chain.max_priority_fee_per_gas, max_fee)
    return Fees(gas_limit, max_fee, raise_fee("maxPriorityFeePerGas", before.priority_fee, asked, tip, tip_cap))


def raise_fee(name: str, before: int, asked: str | None, suggested: int, cap: int) -> int:
    """A fee that nodes take in place of `before`: the caller's, or the larger of the suggested one and 9/8 of it."""
    least = max(-(-before * 11 // 10), before + 1)
    if asked is not None:
        if int(asked) < least:
            raise FeeTooLow(f"{name} {asked} is too low to replace {before}; it must be at least {least}.")
        if int(asked) > cap:
            raise FeeAboveCap(f"{name} {asked} is above the cap of {cap}.")
        return int(asked)
    if least > cap:
        raise FeeAboveCap(f"Replacing {name} {before} takes at least {least}, above the cap of {cap}.")
    return min(max(suggested, -(-before * 9 // 8), least), cap)
