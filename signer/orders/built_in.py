"""The kinds of orders that are signed here. A new kind: a file beside these, and a line here."""

from collections.abc import Mapping
from typing import Final

from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.evm.action_orders import CallsOrder, EvmReplacement, EvmTransfer, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.payment_orders import EvmPaymentOrder, SolanaPaymentOrder
from custody.chains.solana.orders import SolanaOrder
from signer.orders.bitcoin import PSBT
from signer.orders.evm import EVM_TRANSACTION
from signer.orders.evm_calls import EVM_CALLS
from signer.orders.evm_replacement import EVM_REPLACEMENT
from signer.orders.evm_transfer import EVM_TRANSFER
from signer.orders.kind import AnyKind, OrderKinds
from signer.orders.message import EVM_MESSAGE, SOLANA_MESSAGE
from signer.orders.solana import SOLANA_TRANSACTION
from signer.orders.typed_data import TYPED_DATA
from signer.orders.x402 import EVM_PAYMENT, SOLANA_PAYMENT

_STORED: Final[Mapping[type[object], AnyKind]] = {
    EvmOrder: EVM_TRANSACTION,
    TypedDataOrder: TYPED_DATA,
    SolanaOrder: SOLANA_TRANSACTION,
    PsbtOrder: PSBT,
    EvmMessageOrder: EVM_MESSAGE,
    SolanaMessageOrder: SOLANA_MESSAGE,
    EvmPaymentOrder: EVM_PAYMENT,
    SolanaPaymentOrder: SOLANA_PAYMENT,
}
# A replacement, a transfer and the calls of a batch are stored as the transactions that they are.
_BECOME_STORED: Final[Mapping[type[object], AnyKind]] = {
    EvmReplacement: EVM_REPLACEMENT,
    TransferOrder: EVM_TRANSFER,
    EvmTransfer: EVM_TRANSFER,
    CallsOrder: EVM_CALLS,
}
KINDS: Final = OrderKinds({**_STORED, **_BECOME_STORED}, tuple(_STORED))
