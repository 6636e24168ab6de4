"""EIP-712 documents: judged as what they move or allow. Spec 1/4.3."""

import coincurve
import msgspec

from custody.chains.evm import typed_data, typed_effects
from custody.chains.evm.address import checksum
from custody.chains.evm.signature import sign_digest
from custody.chains.orders import TypedDataOrder
from custody.transactions.ledger import Facts
from signer.draft import Built, Draft, Final, Produced, Unlocked, digest_of, text_of
from signer.evm import evm_address


def draft(order: TypedDataOrder) -> Draft:
    document = typed_data.read(order)
    digest = typed_data.digest_of(document)
    text = text_of(order)

    def build(facts: Facts) -> Built:
        subject = typed_effects.subject_of(document, facts.address)
        return Built(
            kind="typed_data",
            to_address=checksum(subject.verifying_contract) if subject.verifying_contract else None, value=None,
            data=_document(order), chain=None, broadcast=False,
            reference_id=order.reference_id,
            fee=None, finish=lambda: Final(None, unlock), subject=subject,
        )  # fmt: skip

    def unlock(secret: bytes) -> Unlocked:
        key = coincurve.PrivateKey(secret)
        return Unlocked(evm_address(key), lambda: Produced(None, "0x" + sign_digest(digest, key).compact.hex(), None))

    return Draft(
        kind="typed_data",
        purpose="evm",
        order_text=text,
        digest=digest_of("typed_data", text.encode()),
        chain=None,
        broadcast=False,
        build=build,
    )


def _document(order: TypedDataOrder) -> str:
    """The document as it was given, without what the request says beside it."""
    fields = {"domain": order.domain, "types": order.types, "primaryType": order.primary_type, "value": order.value}
    return msgspec.json.encode(fields, order="deterministic").decode()
