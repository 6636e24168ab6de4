"""The refusals of orders, by what is asked of the signer and by what is signed."""

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
from custody.kit.errors import Frozen, UpstreamFailed
from custody.kit.quotas import DailyQuotaExceeded, QuotaExceeded
from custody.protocol.signer.refusals import (
    AgentAbsent,
    AlreadyReplaced,
    ApprovalAbsent,
    ApprovalChanged,
    ApprovalExpired,
    ApprovalResolved,
    ApprovalStale,
    AuthorityTampered,
    AuthorizationStale,
    Busy,
    FeeAboveCap,
    FeeTooLow,
    GasLimitTooLow,
    KeyTampered,
    NonceGap,
    NonceImplausible,
    NonceTaken,
    NonceUsed,
    NotEvm,
    NotSigned,
    PolicyTampered,
    PsbtAmbiguous,
    TransactionAbsent,
    TransactionFinal,
    TypedDataAmbiguous,
    UnknownChain,
    UnsupportedChain,
    VoteRefused,
)

# Any order.
ORDER = (
    AgentAbsent,
    Busy,
    DailyQuotaExceeded,
    Frozen,
    KeyTampered,
    PolicyTampered,
    QuotaExceeded,
    UnknownChain,
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
TYPED_DATA = (BadTypedData, TypedDataAmbiguous)
MESSAGE = (BadMessage, MessageNotOurs)
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
DENY = (ApprovalAbsent, ApprovalChanged, ApprovalExpired, ApprovalResolved, Busy)
# What was queued is judged and finished again.
APPROVE = (
    *DENY,
    *ORDER,
    *NODE,
    *EVM,
    *SOLANA,
    *TYPED_DATA,
    *MESSAGE,
    *PSBT,
    *REPLACEMENT,
    *TRANSFER,
    ApprovalStale,
    AuthorityTampered,
    AuthorizationStale,
    VoteRefused,
)
