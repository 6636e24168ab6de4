"""The second reader of EIP-712 documents: eth-account, which shares no code with ours. It is 500 modules."""

from typing import TYPE_CHECKING

from custody.chains.evm.address import keccak256
from custody.chains.evm.typed_schema import DOMAIN_TYPE
from custody.protocol.signer.refusals import TypedDataAmbiguous
from signer.orders.kind import SecondReader

if TYPE_CHECKING:
    from signer.orders.typed_data import TypedDataDraft


class EthAccountReader(SecondReader["TypedDataDraft"]):
    """Hashes the caller's document by itself, and compares the hash that would be signed."""

    def import_library(self) -> None:
        """Import eth-account."""
        import eth_account.messages  # noqa: F401, PLC0415 - kept for `_hash`

    def confirm(self, draft: "TypedDataDraft") -> None:
        """Raise TypedDataAmbiguous unless it makes the same hash from the same document."""
        order = draft.order
        types = {
            name: [{"name": field.name, "type": field.type} for field in fields]
            for name, fields in order.types.items()
            if name != DOMAIN_TYPE
        }
        try:
            theirs = _hash(order.domain, types, order.value)
        except Exception as problem:
            # Whatever it stumbles over, it does not read what we read.
            raise TypedDataAmbiguous from problem
        if theirs != draft.signable:
            raise TypedDataAmbiguous


def _hash(domain: dict[str, object], types: dict[str, list[dict[str, str]]], value: dict[str, object]) -> bytes:
    """The hash that a wallet would sign."""
    from eth_account.messages import encode_typed_data  # noqa: PLC0415 - see above

    read = encode_typed_data(domain, types, value)
    return keccak256(b"\x19" + read.version + read.header + read.body)
