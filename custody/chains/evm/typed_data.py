"""Strict EIP-712: read a document, hash it, sign it.

The hash is always made here from the document that was judged; nobody can hand in a hash. The domain is hashed as it is
declared; what is not hashed of a document is neither judged nor shown.
"""

import json  # noqa: TID251 - msgspec cannot measure a document with big integers
from typing import Any

import msgspec
from coincurve import PrivateKey

from custody.chains.evm.address import keccak256
from custody.chains.evm.signature import sign_digest
from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.chains.evm.typed_schema import DOMAIN_TYPE, Kind, Schema, check_types, read_schema, refuse
from custody.chains.evm.typed_values import Value, fit_struct, hash_struct, only_hashed

MAX_BYTES = 64 * 1024
# Each value may cost a hash, which takes as long as a kilobyte of text; the signer does nothing else meanwhile. The
# largest document is read and hashed in about 5 ms.
MAX_VALUES = 1_000
# Those of the domain come on top.
MAX_DOMAIN_VALUES = 64
# A second reader spells out, for each struct value, its type and all that the type refers to.
MAX_SPELLED_FIELDS = 4_096
# What an answer's frame and a column hold. The standard allows 2**256, and such a document names no chain that we know.
_MAX_CHAIN_ID = 2**63 - 1
# In the order in which the standard lists them, which is the order they are hashed in where no domain is declared.
_DOMAIN_FIELDS = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}


class Document(msgspec.Struct, frozen=True):
    """A checked document with every value in its normal form."""

    domain: dict[str, Value]
    schema: Schema
    primary_type: str
    message: dict[str, Value]

    @property
    def chain_id(self) -> int | None:
        """The chain that the hashed domain names, if any."""
        chain_id = self._domain_value("chainId", "uint")
        return chain_id if isinstance(chain_id, int) and 0 < chain_id <= _MAX_CHAIN_ID else None

    @property
    def verifying_contract(self) -> str | None:
        """The contract that the hashed domain names, in lower case, if any."""
        contract = self._domain_value("verifyingContract", "address")
        return contract if isinstance(contract, str) else None

    def _domain_value(self, field: str, kind: str) -> Value | None:
        """A field of the domain, if it is declared with a type of this kind; text that looks like a chain is none."""
        declared = str(self.schema.structs[DOMAIN_TYPE].get(field))
        return self.domain[field] if declared.rstrip("0123456789") == kind else None


def read(order: TypedDataOrder) -> Document:
    """Check a document, or raise BadTypedData with a sentence that says what to fix."""
    _check_size(order)
    if order.primary_type == DOMAIN_TYPE or order.primary_type not in order.types:
        refuse(f"primaryType {order.primary_type!r} is not the type of a message in types.")
    types, domain = _domain_of(order)
    structs = {**read_schema(types, DOMAIN_TYPE).structs, **read_schema(order.types, order.primary_type).structs}
    schema = Schema(structs)
    message = fit_struct(schema, order.primary_type, order.value, "value")
    return Document(fit_struct(schema, DOMAIN_TYPE, domain, "domain"), schema, order.primary_type, message)


def digest(order: TypedDataOrder) -> bytes:
    """The 32 bytes that a signature of this document covers."""
    return digest_of(read(order))


def digest_of(document: Document) -> bytes:
    """The same for a document already read."""
    hashes: dict[str, bytes] = {}
    separator = hash_struct(document.schema, DOMAIN_TYPE, document.domain, hashes)
    message = hash_struct(document.schema, document.primary_type, document.message, hashes)
    return keccak256(b"\x19\x01" + separator + message)


def hashed_part(order: TypedDataOrder, document: Document) -> dict[str, Any]:
    """The document as it was given, without what its hash does not cover."""
    schema = document.schema
    return {
        "domain": only_hashed(schema, Kind(DOMAIN_TYPE), order.domain),
        "types": {name: fields for name, fields in order.types.items() if name in schema.structs},
        "primaryType": order.primary_type,
        "value": only_hashed(schema, Kind(order.primary_type), order.value),
    }


def sign(order: TypedDataOrder, key: PrivateKey) -> str:
    """The signature as 0x and 65 bytes r, s, v (27 or 28); it is verified before it is returned."""
    return "0x" + sign_digest(digest(order), key).compact.hex()


def _check_size(order: TypedDataOrder) -> None:
    # Counting first: it ends as soon as there is too much.
    check_types(order.types)
    structs = _check_count(order.value, "value", MAX_VALUES)
    structs += _check_count(order.domain, "domain", MAX_DOMAIN_VALUES)
    if structs * sum(map(len, order.types.values())) > MAX_SPELLED_FIELDS:
        refuse(f"The struct values times the fields of all types are more than {MAX_SPELLED_FIELDS}.")
    try:
        text = json.dumps(msgspec.to_builtins([order.domain, order.types, order.value]), ensure_ascii=False)
    except RecursionError:
        refuse("The document is nested too deeply.")
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        refuse(f"The document is larger than {MAX_BYTES} bytes of JSON.")


def _check_count(message: Any, where: str, most: int) -> int:
    """Count fields and elements on every level; structs and arrays count too, also empty ones. Gives the structs."""
    count, structs, waiting = 0, 0, [message]
    while waiting:
        current = waiting.pop()
        structs += isinstance(current, dict)
        inner = current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
        count += len(inner)
        if count > most:
            refuse(f"{where} has more than {most} values.")
        waiting += inner
    return structs


def _domain_of(order: TypedDataOrder) -> tuple[dict[str, list[TypedDataField]], dict[str, Any]]:
    """The types and values of the domain that is hashed: as declared, else the standard's fields that are there."""
    if DOMAIN_TYPE in order.types:
        return order.types, order.domain
    given = {field: value for field, value in order.domain.items() if value is not None}
    if unknown := [field for field in given if field not in _DOMAIN_FIELDS]:
        refuse(
            f"domain has {unknown[0][:128]!r}, which is none of {', '.join(_DOMAIN_FIELDS)}; types.{DOMAIN_TYPE} must "
            "declare the domain as the verifier hashes it."
        )
    fields = [TypedDataField(field, kind) for field, kind in _DOMAIN_FIELDS.items() if field in given]
    return {DOMAIN_TYPE: fields}, given
