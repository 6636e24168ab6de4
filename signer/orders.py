"""From what a caller sent to a draft: each kind of order has its own file. Promise P6."""

from custody.chains.orders import EvmOrder, EvmPrepared, SolanaOrder, SolanaPrepared, TypedDataOrder
from custody.chains.table import ChainTable
from signer import evm, solana, typed_data
from signer.draft import Draft
from signer.raised import Replaced


def draft(
    order: EvmOrder | TypedDataOrder | SolanaOrder,
    prepared: EvmPrepared | SolanaPrepared | None,
    chains: ChainTable,
    *,
    approving: bool = False,
    replaced: Replaced | None = None,
) -> Draft:
    """Check an order by itself; raises Invalid with what to change."""
    if isinstance(order, EvmOrder):
        return evm.draft(order, prepared if isinstance(prepared, EvmPrepared) else None, chains, replaced)
    if isinstance(order, TypedDataOrder):
        return typed_data.draft(order)
    return solana.draft(order, prepared if isinstance(prepared, SolanaPrepared) else None, chains, approving=approving)
