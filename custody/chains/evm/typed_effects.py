"""What a signature over an EIP-712 document lets others do with our money. Spec 1/4.3, decisions 3.

A document is recognised by its whole type string, never by its name alone. What moves value in a way we read
exactly becomes that effect; what resembles such a document, or gives away a standing power, is `opaque` and goes to
a person; everything else moves nothing that we know of.
"""

import re
from collections.abc import Callable
from typing import Any

from custody.chains.evm.address import parse_address
from custody.chains.evm.selectors import MAX_EFFECTS, PERMIT2
from custody.chains.evm.typed_data import Document
from custody.chains.evm.typed_schema import Schema
from custody.chains.types import UNLIMITED, Effect, Subject
from custody.kit.shapes import MAX_UINT256

type Effects = tuple[Effect, ...]
# The message's values were fitted to the very type string that selects the reader, so their types are known.
type Message = dict[str, Any]

_DETAILS = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
_PERMISSIONS = "TokenPermissions(address token,uint256 amount)"
_AUTHORIZATION = "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"

# Stems of what moves value or hands over power, as they occur in type names: orders of marketplaces and swaps,
# Safe and account-abstraction operations, meta-transactions, delegations, session keys.
_POWERFUL = re.compile(
    r"permit|order|transfer|approv|allowance|withdraw|redeem|delegat|authoriz|operation|forward|transaction|metatx"
    r"|safetx|safemessage|personalsign|typeddatasign|walletmessage|spend|session|payment|swap|trade|auction|listing"
    r"|offer|bulk|execut|relay|intent|usdsend|spotsend|maker|taker|borrow|lend|quote|bid|linksigner|enable|calls",
    re.IGNORECASE,
)
# Documents that stand for an action by its hash alone, so nothing in them can be judged.
_BLIND = frozenset({("string source", "bytes32 connectionId")})
# It has a powerful name, and only ever makes an unused authorization unusable.
_HARMLESS = frozenset({"CancelAuthorization(address authorizer,bytes32 nonce)"})


def subject_of(document: Document, sender: str) -> Subject:
    """What a rule judges about a document that we are asked to sign."""
    chain_id = document.chain_id
    return Subject(
        family="evm",
        kind="typed_data",
        chain_id=chain_id,
        caip2=None if chain_id is None else f"eip155:{chain_id}",
        destination=document.verifying_contract,
        effects=effects_of(document, parse_address(sender)),
        verifying_contract=document.verifying_contract,
    )


def effects_of(document: Document, us: str) -> Effects:
    """What the signed document allows others to do; `us` in lower case."""
    spelled = document.schema.encode_type(document.primary_type)
    reader = _READERS.get(spelled)
    if reader is not None:
        complete = document.chain_id is not None and document.verifying_contract is not None
        effects = reader(document, document.message, us) if complete else None
        return _opaque(document, us) if effects is None else effects
    if spelled not in _HARMLESS and _is_suspect(document.schema, document.primary_type):
        return _opaque(document, us)
    return ()


def _opaque(document: Document, us: str) -> Effects:
    return (Effect("opaque", None, 0, us, document.verifying_contract, label=document.primary_type),)


def _is_suspect(schema: Schema, primary_type: str) -> bool:
    if any(_POWERFUL.search(name) for name in schema.structs):
        return True
    fields = tuple(f"{kind} {field}" for field, kind in schema.structs[primary_type].items())
    only_a_hash = len(fields) == 1 and fields[0].startswith("bytes32 ")
    return only_a_hash or fields in _BLIND or fields in _KNOWN_FIELDS


def _asset(document: Document, token: str | None = None) -> str:
    return f"evm:{document.chain_id}:{token or document.verifying_contract}"


def _approval(document: Document, us: str, spender: str, amount: int, token: str | None = None) -> Effect:
    return Effect(
        "approval", _asset(document, token), amount, us,
        spender=spender, unlimited=amount >= UNLIMITED, label=document.primary_type,
    )  # fmt: skip


def _spend(document: Document, us: str, to: str, amount: int, token: str | None = None) -> Effect:
    return Effect(
        "transfer", _asset(document, token), amount, us, to,
        unlimited=amount >= UNLIMITED, label=document.primary_type,
    )  # fmt: skip


def _permit(document: Document, message: Message, us: str) -> Effects | None:
    return (_approval(document, us, message["spender"], message["value"]),) if message["owner"] == us else None


def _dai_permit(document: Document, message: Message, us: str) -> Effects | None:
    amount = MAX_UINT256 if message["allowed"] else 0
    return (_approval(document, us, message["spender"], amount),) if message["holder"] == us else None


def _authorization(document: Document, message: Message, us: str) -> Effects | None:
    return (_spend(document, us, message["to"], message["value"]),) if message["from"] == us else None


def _permit2_approvals(document: Document, message: Message, us: str) -> Effects | None:
    details = _several(message["details"])
    if document.verifying_contract != PERMIT2 or not 1 <= len(details) <= MAX_EFFECTS:
        return None
    return tuple(_approval(document, us, message["spender"], each["amount"], each["token"]) for each in details)


def _permit2_transfers(document: Document, message: Message, us: str) -> Effects | None:
    """The spender may take the amount to wherever it likes, so it counts as sent to the spender."""
    permitted = _several(message["permitted"])
    if document.verifying_contract != PERMIT2 or not 1 <= len(permitted) <= MAX_EFFECTS:
        return None
    return tuple(_spend(document, us, message["spender"], each["amount"], each["token"]) for each in permitted)


def _several(value: Any) -> list[Message]:
    return value if isinstance(value, list) else [value]


_READERS: dict[str, Callable[[Document, Message, str], Effects | None]] = {
    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)": _permit,
    "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)": _dai_permit,
    "TransferWithAuthorization" + _AUTHORIZATION: _authorization,
    "ReceiveWithAuthorization" + _AUTHORIZATION: _authorization,
    "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)" + _DETAILS: _permit2_approvals,
    "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)" + _DETAILS: _permit2_approvals,
    "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)"
    + _PERMISSIONS: _permit2_transfers,
    "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)"
    + _PERMISSIONS: _permit2_transfers,
}
# The same fields under another name are the same power at a contract that chose that name.
_KNOWN_FIELDS = frozenset(tuple(spelled.split("(", 1)[1].split(")", 1)[0].split(",")) for spelled in _READERS)
