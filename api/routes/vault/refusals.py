"""The refusals of orders by what is signed; what any order is refused with, the commands declare."""

from custody.chains.bitcoin.refusals import (
    BadWalletScope,
    PsbtFee,
    PsbtMalformed,
    PsbtNonstandardOutput,
    PsbtNoOwnInput,
    PsbtSighash,
    PsbtUnprovenInput,
)
from custody.chains.evm.address import BadAddress
from custody.chains.evm.rpc import EstimateFailed
from custody.chains.evm.transaction import BadTransaction, ValueOutOfRange
from custody.chains.evm.transfers import (
    AmountRequired,
    BadToken,
    ReferenceRequired,
    SponsorshipUnavailable,
    TwoAmounts,
)
from custody.chains.evm.typed_schema import BadTypedData
from custody.chains.message_reading import BadMessage, MessageNotOurs
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.rpc import BroadcastRefused, InsufficientFunds, RpcRefused, RpcUnavailable
from custody.chains.solana.effects import DeclaredMismatch
from custody.chains.solana.message import SolanaMalformed, SolanaUnsupported
from custody.kit.errors import UpstreamFailed
from custody.payments.refusals import OfferUnpayable, PaymentRefused
from custody.protocol.signer.order_refusals import (
    DocumentExpired,
    FeeAboveCap,
    FeeTooLow,
    GasLimitTooLow,
    NonceGap,
    NonceImplausible,
    NonceTaken,
    NonceUsed,
)
from custody.protocol.signer.refusals import (
    AlreadyReplaced,
    NotEvm,
    NotSigned,
    PsbtAmbiguous,
    TransactionAbsent,
    TransactionFinal,
    TypedDataAmbiguous,
    UnsupportedChain,
)

# One that a node prepares or is sent.
NODE = (BroadcastRefused, InsufficientFunds, NodeCallsSpent, RpcRefused, RpcUnavailable, UpstreamFailed)
EVM = (
    BadAddress,
    BadTransaction,
    EstimateFailed,
    FeeAboveCap,
    FeeTooLow,
    GasLimitTooLow,
    NonceGap,
    NonceImplausible,
    NonceTaken,
    NonceUsed,
    ValueOutOfRange,
)
TRANSFER = (
    AmountRequired,
    BadToken,
    ReferenceRequired,
    SponsorshipUnavailable,
    TwoAmounts,
    UnsupportedChain,
)
SOLANA = (DeclaredMismatch, FeeAboveCap, SolanaMalformed, SolanaUnsupported)
TYPED_DATA = (BadTypedData, DocumentExpired, TypedDataAmbiguous)
MESSAGE = (BadMessage, MessageNotOurs)
PAYMENT = (OfferUnpayable, PaymentRefused, SolanaUnsupported)
PSBT = (
    BadWalletScope,
    FeeAboveCap,
    PsbtAmbiguous,
    PsbtFee,
    PsbtMalformed,
    PsbtNoOwnInput,
    PsbtNonstandardOutput,
    PsbtSighash,
    PsbtUnprovenInput,
)
REPLACEMENT = (AlreadyReplaced, NotEvm, NotSigned, TransactionAbsent, TransactionFinal)
# What was queued is judged and finished again, whatever kind it is of.
QUEUED = (*NODE, *EVM, *SOLANA, *TYPED_DATA, *MESSAGE, *PAYMENT, *PSBT, *REPLACEMENT, *TRANSFER)
