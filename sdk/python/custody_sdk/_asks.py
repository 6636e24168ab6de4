"""The requests of the clients, one function for each: what an argument must be, and what the answer becomes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from custody_sdk import _types as types
from custody_sdk._wire import SAFE, Ask, key_of, payment_name, transaction_id
from custody_sdk.errors import BadArgument, Failed, Refused, Waiting

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS: Final = re.compile(r"[0-9]{1,78}")
_TOKEN: Final = re.compile(r"evm:([1-9][0-9]{0,15}):(0x[0-9a-fA-F]{40})")
_TRANSFER: Final = "0xa9059cbb"
_DEEPEST: Final = 64
NATIVE: Final = "evm:native"


@dataclass(frozen=True, slots=True)
class Signed:
    """An order that was signed: the hash where a chain knows it, the bytes where the service did not send them."""

    tx_id: str
    tx_hash: str | None = None
    # Anyone who holds these can use them, so they are shown only when asked for.
    signature: str | None = field(default=None, repr=False)
    signed_transaction: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Paid:
    """A payment by x402: send the request again with this header."""

    tx_id: str
    header: str
    value: str = field(repr=False)
    asset: str
    amount: str
    expires_at: str

    @property
    def headers(self) -> dict[str, str]:
        """The header as a mapping."""
        return {self.header: self.value}


def units(amount: str, decimals: int) -> int:
    """Return an amount of whole coins in smallest units: `units("42.50", 6)` is 42,500,000. Never rounds."""
    try:
        scaled = Decimal(amount).scaleb(decimals) if isinstance(amount, str) else Decimal("NaN")
    except InvalidOperation:
        scaled = Decimal("NaN")
    if not (scaled.is_finite() and scaled == scaled.to_integral_value() and 0 <= scaled < 2**256):
        raise BadArgument(0, "bad_amount", f"amount must be a text such as '42.50', with at most {decimals} places.")
    return int(scaled)


def smallest(amount: int | str, name: str = "amount") -> str:
    """Check an amount in smallest units, and return it as it is sent."""
    text = str(amount) if isinstance(amount, int) and not isinstance(amount, bool) else amount
    if not isinstance(text, str) or not _DIGITS.fullmatch(text) or int(text) >= 2**256:
        raise BadArgument(
            0, "bad_amount", f"{name} must be whole smallest units, such as '42500000' for 42.50 USDC; see `units`."
        )
    return str(int(text))


def address(text: str, name: str = "to") -> str:
    """Check an EVM address."""
    if not isinstance(text, str) or not _ADDRESS.fullmatch(text):
        raise BadArgument(0, "bad_address", f"{name} must be an EVM address: 0x and 40 hex digits.")
    return text


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON that every reader reads alike: large integers as text, bytes as hex."""
    if depth > _DEEPEST:
        raise BadArgument(0, "bad_document", f"the document is nested more than {_DEEPEST} deep.")
    if isinstance(value, Mapping):
        return {str(name): plain(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= SAFE else str(value)
    raise BadArgument(
        0, "bad_document", f"the document has a {type(value).__name__}, which JSON does not know exactly."
    )


def transfer(to: str, amount: int | str, asset: str, chain_id: int | None) -> types.EvmOrder:
    """Return the order that pays `amount` of an asset."""
    units_sent, to = smallest(amount), address(to)
    if asset == NATIVE:
        order: types.EvmOrder = {"to": to, "value": units_sent}
    elif found := _TOKEN.fullmatch(asset):
        if chain_id not in (None, int(found[1])):
            raise BadArgument(0, "bad_asset", f"chain_id is {chain_id}, and asset is on chain {found[1]}.")
        chain_id = int(found[1])
        order = {"to": found[2], "value": "0", "data": f"{_TRANSFER}{to[2:].lower():0>64}{int(units_sent):064x}"}
    else:
        raise BadArgument(
            0, "bad_asset", "asset must be evm:native or evm:<chainId>:<0x token>. Solana: custody_sdk.solana."
        )
    return order if chain_id is None else order | {"chainId": chain_id}


def evm(agent: str, name: str, order: types.EvmOrder) -> Ask[Signed]:
    """Ask for an EVM transaction."""
    return _sign(agent, "signEvmTransaction", name, order)


def typed_data(agent: str, name: str, document: Mapping[str, Any]) -> Ask[Signed]:
    """Ask for the signature of an EIP-712 document."""
    fields = {one: plain(document[one]) for one in ("domain", "types", "primaryType", "message") if one in document}
    if extra := sorted({str(one) for one in document} - fields.keys()):
        raise BadArgument(0, "bad_document", f"the document has fields that nobody reads: {', '.join(extra)[:200]}.")
    return _sign(agent, "signTypedData", name, fields)


def message(agent: str, name: str, text: str | bytes, *, family: str, encode: Any) -> Ask[Signed]:
    """Ask for the signature of a message: a text, or bytes that `encode` spells for its family."""
    said = {"message": text} if isinstance(text, str) else {"raw": encode(text)}
    return _sign(agent, "signMessage", name, {"chainFamily": family, **said})


def solana(agent: str, name: str, order: types.SolanaOrder) -> Ask[Signed]:
    """Ask for a Solana transaction."""
    return _sign(agent, "signSolanaTransaction", name, order)


def psbt(agent: str, name: str, order: types.PsbtOrder) -> Ask[types.PsbtSigned]:
    """Ask for the signatures of a PSBT."""
    key = key_of(agent, "signBitcoinPsbt", payment_name(name))
    body = {**order, "referenceId": name}
    return Ask("signBitcoinPsbt", lambda data: cast(types.PsbtSigned, dict(data)), agent, body=body, key=key)


def demand(agent: str, name: str, asked: Mapping[str, Any] | str, resource: str | None) -> Ask[Paid]:
    """Ask for the payment of a demand by x402."""
    body: dict[str, Any] = {
        "demand": asked if isinstance(asked, str) else plain(asked),
        "referenceId": payment_name(name),
    }
    body |= {} if resource is None else {"resource": resource}
    return Ask("payDemand", _read_paid, agent, body=body, key=key_of(agent, "payDemand", name))


def simulation(agent: str, kind: str, request: Mapping[str, Any]) -> Ask[types.Simulated]:
    """Ask what would become of an order now."""
    return Ask("simulateOrder", _as_shown(types.Simulated), agent, body={"kind": kind, "request": plain(request)})


def withdrawal(agent: str, tx_id: str) -> Ask[types.Withdrawn]:
    """Ask to take back an order that waits."""
    key = key_of(agent, "withdrawTransaction", transaction_id(tx_id))
    return Ask("withdrawTransaction", _as_shown(types.Withdrawn), agent, tx_id, body={}, key=key)


def transaction(agent: str, tx_id: str) -> Ask[types.Transaction]:
    """Ask for a transaction."""
    return Ask("getTransaction", _as_shown(types.Transaction), agent, transaction_id(tx_id))


def receipt(agent: str, tx_id: str) -> Ask[types.Receipt]:
    """Ask for the receipt of a transaction."""
    return Ask("getReceipt", _as_shown(types.Receipt), agent, transaction_id(tx_id))


def by_name(agent: str, name: str) -> Ask[list[types.ListedTransaction]]:
    """Ask for the transactions with a name."""
    query = {"referenceId": payment_name(name)}
    return Ask("listTransactions", lambda data: list(data["transactions"]), agent, query=query)


def me() -> Ask[types.Me]:
    """Ask whose token it is."""
    return Ask("getMe", _as_shown(types.Me))


def wallet(agent: str) -> Ask[types.Agent]:
    """Ask for the agent and its addresses."""
    return Ask("getAgent", _as_shown(types.Agent), agent)


def balance(agent: str, chain_id: int | None) -> Ask[types.AgentBalance]:
    """Ask for a wallet's coins."""
    return Ask("getBalance", _as_shown(types.AgentBalance), agent, query=_chain(chain_id))


def tokens(agent: str, chain_id: int | None) -> Ask[types.AgentTokens]:
    """Ask for a wallet's tokens."""
    return Ask("listTokenBalances", _as_shown(types.AgentTokens), agent, query=_chain(chain_id))


def apis(agent: str) -> Ask[list[types.CallableApi]]:
    """Ask which APIs may be called through the proxy."""
    return Ask("listCallableApis", list, agent)


def dashboard(agent: str) -> Ask[types.Dashboard]:
    """Ask what is left of each limit, and what waits."""
    return Ask("getDashboard", _as_shown(types.Dashboard), agent)


def what_became_of(found: types.Transaction) -> Signed:
    """Return what a transaction came to; raises while a person decides, and where it was refused."""
    tx_id, status = str(found["id"]), found["status"]
    if status == "pending_approval":
        raise Waiting(202, "approval_required", "A person decides; nothing needs to be sent again.", {"txId": tx_id})
    if status == "rejected":
        why = found.get("reason") or found.get("statusDetail") or "Refused."
        raise Refused(403, str(found.get("statusDetail") or "approval_denied"), str(why), {"txId": tx_id})
    return Signed(tx_id, found["txHash"], found.get("signature"), found.get("signedTransaction"))


def is_settled(found: types.Transaction) -> bool:
    """Say whether the chain has executed it; raises where it never will."""
    what_became_of(found)
    if found["status"] == "failed":
        raise Failed(
            200, "failed", str(found["statusDetail"] or "The chain did not execute it."), {"txId": found["id"]}
        )
    return found["status"] == "confirmed"


def _sign(agent: str, operation: str, name: str, body: Mapping[str, Any]) -> Ask[Signed]:
    sent = {**body, "referenceId": payment_name(name)}
    return Ask(operation, _read_signed, agent, body=sent, key=key_of(agent, operation, name))


def _read_signed(data: Any) -> Signed:
    found = Signed(
        transaction_id(data["txId"]), data.get("txHash"), data.get("signature"), data.get("signedTransaction")
    )
    if not any((found.tx_hash, found.signature, found.signed_transaction)):
        raise ValueError
    return found


def _read_paid(data: Any) -> Paid:
    texts = [data[one] for one in ("txId", "header", "value", "asset", "amount", "expiresAt")]
    # What the header is called is decided here: an answer must not name `Authorization`.
    if texts[1] not in ("PAYMENT-SIGNATURE", "X-PAYMENT") or not all(isinstance(one, str) and one for one in texts):
        raise ValueError
    return Paid(*texts)


def _as_shown[T](_: type[T]) -> Any:
    def read(data: Any) -> T:
        if not isinstance(data, dict):
            raise TypeError
        return cast(T, data)

    return read


def _chain(chain_id: int | None) -> dict[str, str]:
    return {} if chain_id is None else {"chainId": str(int(chain_id))}
