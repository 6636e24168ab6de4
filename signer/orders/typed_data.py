"""EIP-712 documents: judged as what they move or allow."""

from collections.abc import Mapping
from typing import Any

import coincurve
import msgspec

from custody.chains.evm import typed_data, typed_deadlines, typed_effects
from custody.chains.evm.address import address_of, checksum
from custody.chains.evm.signature import sign_digest
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.types import Effect
from custody.worker.sealing import Tampered
from signer.ledger import Facts
from signer.orders.drafts import TypedDataDraft
from signer.orders.kind import Decoded, Final, Inputs, OrderKind, Produced, digest_of, text_of
from signer.orders.typed_data_reader import EthAccountReader
from signer.wallets.evm import EVM_KEYS


class TypedDataFinal(Final, frozen=True, kw_only=True):
    """The hash, which was made here from the document that was judged."""

    signable: bytes


class TypedDataKind(OrderKind[TypedDataOrder, TypedDataDraft, Decoded, TypedDataFinal, coincurve.PrivateKey]):
    """`POST /vault/{agentId}/sign-typed-data`."""

    name = "typed_data"
    keys = EVM_KEYS
    permissions = frozenset({"sign_typed_data"})
    second_reader = EthAccountReader()

    def check(self, order: TypedDataOrder, inputs: Inputs) -> TypedDataDraft:
        """Read the document strictly, and hash it."""
        document = typed_data.read(order)
        text = text_of(order)
        contract = document.verifying_contract
        return TypedDataDraft(
            order_text=text,
            digest=digest_of("typed_data", text.encode()),
            chain=None,
            broadcast=False,
            reference_id=order.reference_id,
            to_address=checksum(contract) if contract else None,
            value=None,
            data=msgspec.json.encode(typed_data.hashed_part(order, document), order="deterministic").decode(),
            order=order,
            document=document,
            signable=typed_data.digest_of(document),
            ends=typed_deadlines.ends_at(document),
        )

    def effects(self, draft: TypedDataDraft, facts: Facts) -> Decoded:
        """Decode what the signed document lets others do with this wallet's money."""
        return Decoded(subject=typed_effects.subject_of(draft.document, facts.address), fee=None)

    def finish(self, draft: TypedDataDraft, decoded: Decoded, facts: Facts) -> TypedDataFinal:
        """Nothing is left to fix."""
        return TypedDataFinal(signable=draft.signable)

    def sign(self, final: TypedDataFinal, key: coincurve.PrivateKey) -> Produced:
        """Sign the hash."""
        return Produced(None, "0x" + sign_digest(final.signable, key).compact.hex(), None)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """Read the stored document, and recover the key from its signature."""
        document = typed_data.read(msgspec.json.decode(row["order_text"], type=TypedDataOrder))
        made = bytes.fromhex(row["signature"].removeprefix("0x"))
        key = coincurve.PublicKey.from_signature_and_message(
            made[:64] + bytes((made[64] - 27,)), typed_data.digest_of(document), hasher=None
        )
        if address_of(key.format(compressed=False)) != address:
            raise Tampered
        return typed_effects.subject_of(document, address).effects


TYPED_DATA = TypedDataKind()
