"""Orders that were checked by themselves and that a second reader confirms."""

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.bitcoin.types import Psbt, WalletScope
from custody.chains.evm.typed_data import Document
from custody.chains.evm.typed_order import TypedDataOrder
from signer.orders.kind import Draft


class TypedDataDraft(Draft, frozen=True, kw_only=True):
    """A document whose every value is in its normal form, and the hash that a signature of it covers."""

    order: TypedDataOrder
    document: Document
    signable: bytes


class PsbtDraft(Draft, frozen=True, kw_only=True):
    """A PSBT that was read strictly, the address that is to sign, and what holds for its fee and outputs."""

    order: PsbtOrder
    scope: WalletScope
    parsed: Psbt
    bounds: Bounds
