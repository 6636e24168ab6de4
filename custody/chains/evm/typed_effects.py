"""What a signature over an EIP-712 document lets others do with our money.

A document is recognised by its whole type string, never by its name alone. What moves value in a way we read exactly
becomes that effect. What is known to move value or power, but cannot be read exactly, is `unread`. `_HARMLESS` lists
the kinds that move nothing and grant nothing. Every other kind is unknown: a person decides where rules limit spend
or addresses, unless a contract-allowlist lists its contract.
"""

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

# Kinds that let others act for us, or take what is ours, in ways that are not read here. They count by each struct's
# own definition, at any depth of the document: a bulk order holds orders, a Permit2 witness stands beside the
# permission. A listed contract does not vouch for them: with one of these its constraints could be walked around.
_POWERFUL = frozenset(
    {
        _DETAILS,
        _PERMISSIONS,
        # Seaport 1.1 to 1.6: ProjectOpenSea/seaport, docs/SeaportDocumentation.md.
        "OrderComponents(address offerer,address zone,OfferItem[] offer,ConsiderationItem[] consideration,"
        "uint8 orderType,uint256 startTime,uint256 endTime,bytes32 zoneHash,uint256 salt,bytes32 conduitKey,"
        "uint256 counter)",
        # CoW Protocol: cowprotocol/contracts, src/contracts/libraries/GPv2Order.sol.
        "Order(address sellToken,address buyToken,address receiver,uint256 sellAmount,uint256 buyAmount,"
        "uint32 validTo,bytes32 appData,uint256 feeAmount,string kind,bool partiallyFillable,"
        "string sellTokenBalance,string buyTokenBalance)",
        # Safe 1.0 to 1.4: safe-global/safe-smart-account, contracts/Safe.sol, CompatibilityFallbackHandler.sol.
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,"
        "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)",
        "SafeMessage(bytes message)",
        # Tokens bridged to Polygon: maticnetwork/pos-portal, contracts/common/NativeMetaTransaction.sol.
        "MetaTransaction(uint256 nonce,address from,bytes functionSignature)",
        # ERC-2771 forwarders: OpenZeppelin/openzeppelin-contracts 4 (MinimalForwarder) and 5 (ERC2771Forwarder).
        "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,bytes data)",
        "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)",
    }
)
# Whole documents that move nothing and grant nothing, whatever their domain. A sign-in that opens an account or makes
# a key somewhere (dYdX, Polymarket, Farcaster) grants something, and so does a vote; neither belongs here.
_HARMLESS = frozenset(
    {
        # The example of EIP-712 itself.
        "Mail(Person from,Person to,string contents)Person(string name,address wallet)",
        # ERC-3009: makes an unused authorization unusable.
        "CancelAuthorization(address authorizer,bytes32 nonce)",
        # CoW Protocol: withdraws orders that were not settled yet; cowprotocol/services, crates/model/src/order.rs.
        "OrderCancellations(bytes[] orderUids)",
    }
)


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
        return _unread(document, us) if effects is None else effects
    if spelled in _HARMLESS:
        return ()
    if _is_powerful(document.schema, document.primary_type):
        return _unread(document, us)
    return _unread(document, us, unknown=True)


def _unread(document: Document, us: str, *, unknown: bool = False) -> Effects:
    contract = document.verifying_contract
    return (Effect("unread", None, 0, us, contract, unknown=unknown, label=document.primary_type),)


def _is_powerful(schema: Schema, primary_type: str) -> bool:
    fields = tuple(f"{kind} {field}" for field, kind in schema.structs[primary_type].items())
    return fields in _KNOWN_FIELDS or any(schema.definition(name) in _POWERFUL for name in schema.structs)


def _asset(document: Document, token: str | None = None) -> str:
    return f"evm:{document.chain_id}:{token or document.verifying_contract}"


def _approval(document: Document, us: str, spender: str, amount: int, token: str | None = None) -> Effect:
    return Effect(
        "approval",
        _asset(document, token),
        amount,
        us,
        spender=spender,
        unlimited=amount >= UNLIMITED,
        label=document.primary_type,
    )


def _spend(document: Document, us: str, to: str, amount: int, token: str | None = None) -> Effect:
    return Effect(
        "transfer",
        _asset(document, token),
        amount,
        us,
        to,
        unlimited=amount >= UNLIMITED,
        label=document.primary_type,
    )


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
