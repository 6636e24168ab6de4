"""The second reader of EIP-712 documents: eth-account, which shares no code with ours. It is 500 modules."""

from custody.chains.evm.address import keccak256
from custody.chains.evm.typed_schema import DOMAIN_TYPE
from custody.protocol.signer.refusals import TypedDataAmbiguous
from signer.orders.drafts import TypedDataDraft
from signer.orders.kind import SecondReader


class EthAccountReader(SecondReader[TypedDataDraft]):
    """Hashes the caller's document by itself, and compares the hash that would be signed."""

    def import_library(self) -> None:
        """Import eth-account."""
        import eth_account.messages  # noqa: F401, PLC0415 - kept for `_hash`

    def confirm(self, draft: TypedDataDraft) -> None:
        """Raise TypedDataAmbiguous unless it makes the same hash from the same document."""
        order = draft.order
        types = {
            name: [{"name": field.name, "type": field.type} for field in fields] for name, fields in order.types.items()
        }
        try:
            theirs = _hash(order.domain, types, order.primary_type, order.value)
        except Exception as problem:
            # Whatever it stumbles over, it does not read what we read.
            raise TypedDataAmbiguous from problem
        if theirs != draft.signable:
            raise TypedDataAmbiguous


def _hash(
    domain: dict[str, object], types: dict[str, list[dict[str, str]]], primary: str, value: dict[str, object]
) -> bytes:
    """The hash that a wallet would sign.

    The library's own entry takes no declared domain, and no types beside those of the message; what it calls does.
    """
    from eth_account._utils.encode_typed_data import encoding_and_hashing as theirs  # noqa: PLC0415 - see above

    if DOMAIN_TYPE in types:
        separator = theirs.hash_struct(DOMAIN_TYPE, types, domain)
    else:
        separator = theirs.hash_domain({field: given for field, given in domain.items() if given is not None})
    return keccak256(b"\x19\x01" + separator + theirs.hash_struct(primary, types, value))
