"""Strict EIP-712: read a document, hash it, sign it.

The hash is always made here from the document that was judged; nobody can hand in a hash.
"""

import json  # noqa: TID251 - msgspec cannot measure a document with big integers
from typing import Any

import msgspec
from coincurve import PrivateKey

from custody.chains.evm.address import ZERO_ADDRESS, keccak256
from custody.chains.evm.signature import sign_digest
from custody.chains.evm.typed_schema import DOMAIN_TYPE, Kind, Schema, check_types, read_schema, refuse
from custody.chains.evm.typed_values import Value, fit_atom, fit_struct, hash_struct
from custody.chains.orders import TypedDataOrder

MAX_BYTES = 64 * 1024
# Each value may cost a hash, which takes as long as a kilobyte of text; the signer does nothing else meanwhile. The
# largest document is read and hashed in about 5 ms.
MAX_VALUES = 1_000
# A second reader spells out, for each struct value, its type and all that the type refers to.
MAX_SPELLED_FIELDS = 4_096
# In the order in which the standard lists them, which is the order they are hashed in.
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
        """The chain the domain names, if any."""
        chain_id = self.domain.get("chainId")
        return chain_id if isinstance(chain_id, int) else None

    @property
    def verifying_contract(self) -> str | None:
        """The contract the domain names, in lower case, if any."""
        contract = self.domain.get("verifyingContract")
        return contract if isinstance(contract, str) else None


def read(order: TypedDataOrder) -> Document:
    """Check a document, or raise BadTypedData with a sentence that says what to fix."""
    _check_size(order)
    domain = _read_domain(order.domain)
    _check_declared_domain(order, domain)
    types = {name: fields for name, fields in order.types.items() if name != DOMAIN_TYPE}
    schema = read_schema(types, order.primary_type)
    message = fit_struct(schema, order.primary_type, order.value, "value")
    return Document(domain, schema, order.primary_type, message)


def digest(order: TypedDataOrder) -> bytes:
    """The 32 bytes that a signature of this document covers."""
    return digest_of(read(order))


def digest_of(document: Document) -> bytes:
    """The same for a document already read."""
    domain_schema = Schema({DOMAIN_TYPE: {field: Kind(_DOMAIN_FIELDS[field]) for field in document.domain}})
    separator = hash_struct(domain_schema, DOMAIN_TYPE, document.domain, {})
    return keccak256(
        b"\x19\x01" + separator + hash_struct(document.schema, document.primary_type, document.message, {})
    )


def sign(order: TypedDataOrder, key: PrivateKey) -> str:
    """The signature as 0x and 65 bytes r, s, v (27 or 28); it is verified before it is returned."""
    return "0x" + sign_digest(digest(order), key).compact.hex()


def _check_size(order: TypedDataOrder) -> None:
    # Counting first: it ends as soon as there is too much.
    check_types(order.types)
    structs = _check_count(order.value, "value")
    _check_count(order.domain, "domain")
    if structs * sum(map(len, order.types.values())) > MAX_SPELLED_FIELDS:
        refuse(f"The struct values times the fields of all types are more than {MAX_SPELLED_FIELDS}.")
    try:
        text = json.dumps(msgspec.to_builtins([order.domain, order.types, order.value]), ensure_ascii=False)
    except RecursionError:
        refuse("The document is nested too deeply.")
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        refuse(f"The document is larger than {MAX_BYTES} bytes of JSON.")


def _check_count(message: Any, where: str) -> int:
    """Count fields and elements on every level; structs and arrays count too, also empty ones. Gives the structs."""
    count, structs, waiting = 0, 0, [message]
    while waiting:
        current = waiting.pop()
        structs += isinstance(current, dict)
        inner = current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
        count += len(inner)
        if count > MAX_VALUES:
            refuse(f"{where} has more than {MAX_VALUES} values.")
        waiting += inner
    return structs


def _read_domain(domain: dict[str, Any]) -> dict[str, Value]:
    if unknown := [key for key in domain if key not in _DOMAIN_FIELDS]:
        refuse(f"domain has {unknown[0][:128]!r}; it may have {', '.join(_DOMAIN_FIELDS)}.")
    read = {
        field: fit_atom(kind, domain[field], f"domain.{field}")
        for field, kind in _DOMAIN_FIELDS.items()
        if field in domain
    }
    if read.get("chainId") == 0:
        refuse("domain.chainId must not be 0; leave it out if the document is for no chain.")
    if read.get("verifyingContract") == ZERO_ADDRESS:
        refuse("domain.verifyingContract must not be the zero address; leave it out if there is no contract.")
    return read


def _check_declared_domain(order: TypedDataOrder, domain: dict[str, Value]) -> None:
    """The domain type follows from the fields that are there; a declared one may only say the same."""
    declared = order.types.get(DOMAIN_TYPE)
    present = [(field, _DOMAIN_FIELDS[field]) for field in domain]
    if declared is not None and [(field.name, field.type) for field in declared] != present:
        listed = ", ".join(f"{kind} {field}" for field, kind in present)
        refuse(f"types.{DOMAIN_TYPE} must list exactly the fields of domain, in this order: {listed}; or leave it out.")
