"""The rights over our money that a signature on an EIP-712 document gives to others.

A document is recognised by its whole type string, never by its name alone, among the kinds of `typed_kinds.py`. What
moves value in a way we read exactly becomes that effect. What is known to move value or power, but is not read, is
`unread`, which touches everything. Every other kind is unknown: a person decides where rules limit spend or addresses,
unless a contract-allowlist lists its contract.
"""

from custody.chains.evm.address import parse_address
from custody.chains.evm.selectors import MAX_EFFECTS
from custody.chains.evm.typed_data import Document
from custody.chains.evm.typed_kinds import (
    CALLS,
    HARMLESS,
    PERMISSIONS,
    READERS,
    SEAPORT_ORDER,
    UNREAD,
    WITNESS_FIELDS,
    Called,
    Effects,
    Reader,
    permit2_witness,
    seaport_orders,
    unread,
)
from custody.chains.types import Call, Subject, TypedFields

# The same fields under another name are the same power at a contract that chose that name.
_KNOWN_FIELDS = frozenset(spelled.split("(", 1)[1].split(")", 1)[0] for spelled in (*READERS, *CALLS))
# What names the kind is the fields that each document of it has; what they refer to differs.
_WITNESSED = {
    "PermitWitnessTransferFrom": WITNESS_FIELDS.format("TokenPermissions"),
    "PermitBatchWitnessTransferFrom": WITNESS_FIELDS.format("TokenPermissions[]"),
}


def subject_of(document: Document, sender: str) -> Subject:
    """Build the subject that rules judge of a document that we are asked to sign."""
    chain_id = document.chain_id
    effects, calls = _decode(document, parse_address(sender))
    return Subject(
        family="evm",
        kind="typed_data",
        chain_id=chain_id,
        caip2=None if chain_id is None else f"eip155:{chain_id}",
        destination=document.verifying_contract,
        effects=effects,
        calls=calls,
        verifying_contract=document.verifying_contract,
        typed=TypedFields(document.schema.encode_type(document.primary_type), document.message),
    )


def is_read(document: Document) -> bool:
    """Say whether its kind is one that is read, by its own fields or by the call in it."""
    spelled = document.schema.encode_type(document.primary_type)
    return spelled in CALLS or _reader(document, spelled) is not None


def _decode(document: Document, us: str) -> Called:
    """List what the signed document allows others to do, and what it calls; `us` in lower case."""
    spelled = document.schema.encode_type(document.primary_type)
    if spelled in HARMLESS:
        return (), ()
    caller, reader = CALLS.get(spelled), _reader(document, spelled)
    if caller is None and reader is None:
        return (unread(document, us, unknown=not _is_powerful(document)),), ()
    effects: Effects | None = None
    calls: tuple[Call, ...] = ()
    # Without both, the same signature may count elsewhere.
    if document.chain_id is not None and document.verifying_contract is not None:
        if caller is not None:
            effects, calls = caller(document, document.message, us) or ((), ())
        elif reader is not None:
            effects = reader(document, document.message, us)
    # Nothing at all is no reading either: such a document is not what its kind is for.
    return (effects, calls) if effects and len(effects) <= MAX_EFFECTS else ((unread(document, us),), ())


def _reader(document: Document, spelled: str) -> Reader | None:
    structs = document.schema.structs
    fields = list(structs[document.primary_type].items())
    if known := READERS.get(spelled):
        return known
    first = document.schema.definition(document.primary_type).partition("(")[2].rpartition(",")[0] + ","
    if _WITNESSED.get(document.primary_type) == first:
        return permit2_witness if document.schema.definition("TokenPermissions") == PERMISSIONS else None
    name, kind = fields[0]
    tree = document.primary_type, name, kind.base, len(fields) == 1 and set(kind.sizes) == {2}
    if tree == ("BulkOrder", "tree", "OrderComponents", True):
        return seaport_orders if document.schema.encode_type("OrderComponents") == SEAPORT_ORDER else None
    return None


def _is_powerful(document: Document) -> bool:
    fields = document.schema.definition(document.primary_type).partition("(")[2].removesuffix(")")
    return fields in _KNOWN_FIELDS or any(
        document.schema.definition(name) in UNREAD for name in document.schema.structs
    )
