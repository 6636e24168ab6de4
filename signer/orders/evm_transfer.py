"""A transfer: the transaction is built here from who receives how much of what, and judged like any other.

More than of any other is asked of a token's: a contract-allowlist must bound its amount and its recipients.
"""

from collections.abc import Mapping
from typing import Any

import coincurve
import msgspec

from custody.chains.evm.action_orders import EvmTransfer, TransferOrder
from custody.chains.evm.orders import EvmPrepared
from custody.chains.evm.transfers import BadToken, transaction
from custody.chains.types import Effect
from custody.protocol.signer.refusals import UnsupportedChain
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders import evm
from signer.orders.evm import EvmDecoded, EvmDraft, EvmFinal
from signer.orders.kind import Inputs, OrderKind, Produced
from signer.wallets.evm import EVM_KEYS


class EvmTransferKind(OrderKind[TransferOrder | EvmTransfer, EvmDraft, EvmDecoded, EvmFinal, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/actions/transfer`."""

    name = "evm"
    keys = EVM_KEYS
    needs_signer = True
    permissions = frozenset({"transfer"})

    def check(self, order: TransferOrder | EvmTransfer, inputs: Inputs) -> EvmDraft:
        """As a transaction; one that was kept must still be what its transfer becomes."""
        transfer = transaction(order) if isinstance(order, TransferOrder) else _rebuild(order)
        chain = inputs.chains.active if transfer.chain_id is None else inputs.chains.find(transfer.chain_id)
        if chain is not None and chain.family != "evm":
            raise UnsupportedChain(f"Transfers are made on EVM chains, and {chain.name} ({chain.id}) is none.")
        prepared = inputs.prepared if isinstance(inputs.prepared, EvmPrepared) else None
        draft = evm.check(transfer, prepared, inputs.chains)
        return msgspec.structs.replace(draft, action=transfer.action)

    def effects(self, draft: EvmDraft, facts: Facts) -> EvmDecoded:
        """Decode what the payment does; a token's must be listed with its bounds."""
        token = draft.action.token if draft.action else None
        if token is not None and token == facts.address:
            raise BadToken("token is this agent's own wallet, which is no contract; for the coin send `native`.")
        decoded = evm.EVM_TRANSACTION.effects(draft, facts)
        subject = msgspec.structs.replace(decoded.subject, bounded=token is not None)
        return msgspec.structs.replace(decoded, subject=subject)

    def finish(self, draft: EvmDraft, decoded: EvmDecoded, facts: Facts) -> EvmFinal:
        """Choose the nonce."""
        return evm.EVM_TRANSACTION.finish(draft, decoded, facts)

    def sign(self, final: EvmFinal, key: coincurve.PrivateKey) -> Produced:
        """Encode and sign."""
        return evm.sign(final, key)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the signed bytes."""
        return evm.signed_effects(row, address)


EVM_TRANSFER = EvmTransferKind()


def _rebuild(kept: EvmTransfer) -> EvmTransfer:
    """A transfer that was kept, built again from what was asked for: its text may do nothing else."""
    order = TransferOrder(
        to=kept.action.recipient,
        value=kept.action.amount,
        token=kept.action.token,
        chain_id=kept.chain_id,
        broadcast=kept.broadcast,
        reference_id=kept.reference_id,
    )
    built = transaction(order)
    if built != kept:
        raise Tampered
    return built
