"""Documents made from their type strings: every field has a plain value, but for those that a test names."""

from typing import Any

import msgspec

from custody.chains.evm.selectors import PERMIT2
from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.evm.typed_kinds import CALLS, READERS, WITNESSES
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.types import Effect

US, TOKEN, OTHER, SPENDER = ("0x" + digit * 40 for digit in "1234")
ZERO = "0x" + "0" * 40
DOMAIN = {"name": "n", "version": "1", "chainId": 8453, "verifyingContract": TOKEN}
PERMIT2_DOMAIN = {"name": "Permit2", "chainId": 8453, "verifyingContract": PERMIT2}
COW = {"name": "Gnosis Protocol", "version": "v2", "chainId": 1} | {
    "verifyingContract": "0x9008D19f58AAbD9eD0D60971565AA8510560ab41"
}
ZERO_EX = {"name": "ZeroEx", "version": "1.0.0", "chainId": 1} | {
    "verifyingContract": "0xDef1C0ded9bec7F1a1670819833240f027b25EfF"
}
SEAPORT = {"name": "Seaport", "version": "1.6", "chainId": 1} | {
    "verifyingContract": "0x0000000000000068F116a894984e2DB1123eB395"
}
POLYMARKET = {"name": "Polymarket CTF Exchange", "version": "1", "chainId": 137} | {
    "verifyingContract": "0x4bFb41d5B3570DeFd03C39a9A4D8dE6Bd8B8982E"
}
EXCHANGE = {"name": "HyperliquidSignTransaction", "version": "1", "chainId": 421614, "verifyingContract": ZERO}
# Where the samples of the other kinds are for.
_PLACES = {
    "Permit": PERMIT2_DOMAIN,
    "Order(address sellToken": COW,
    "LimitOrder(address": ZERO_EX,
    "RfqOrder": ZERO_EX,
    "OtcOrder": ZERO_EX,
    "OrderComponents": SEAPORT,
    "Order(uint256 salt": POLYMARKET,
    "Hyperliquid": EXCHANGE,
}
_DEADLINES = ("deadline", "sigDeadline", "validBefore", "validTo", "expiry", "expiration", "endTime")
_OURS = ("owner", "holder", "from", "maker", "offerer", "swapper", "signer", "recipient")


def structs_of(spelled: str) -> dict[str, list[dict[str, str]]]:
    """The types that a type string spells."""
    found = {}
    for definition in spelled.split(")")[:-1]:
        name, _, fields = definition.partition("(")
        found[name] = [dict(zip(("type", "name"), field.split(" "), strict=True)) for field in fields.split(",")]
    return found


def plain(kind: str, structs: dict[str, list[dict[str, str]]], name: str = "") -> Any:
    """A value of a type."""
    if kind.endswith("]"):
        inner, _, size = kind[:-1].rpartition("[")
        return [plain(inner, structs) for _ in range(int(size or 1))]
    if kind in structs:
        return {field["name"]: plain(field["type"], structs, field["name"]) for field in structs[kind]}
    if kind == "address":
        return US if name in _OURS else SPENDER if name == "spender" else OTHER
    if name in _DEADLINES:
        return 4_000_000_000
    if kind.startswith(("uint", "int")):
        return 0 if name in ("operation", "gasPrice", "side", "feeAmount") else 1
    texts = {"bool": False, "string": OTHER if name == "destination" else "x", "bytes": "0x"}
    return texts[kind] if kind in texts else "0x" + "01" * int(kind[5:])


def sample(spelled: str, domain: dict[str, Any] | None = None, **changes: Any) -> TypedDataOrder:
    """A document of a kind, at a place where such documents are signed, with some fields of its message changed."""
    structs = structs_of(spelled)
    primary = next(iter(structs))
    found = [place for begin, place in _PLACES.items() if spelled.startswith(begin)]
    if spelled.startswith(("Permit(", "Permit2")):
        found = []
    body = {"domain": domain or (found or [DOMAIN])[0], "types": structs, "primaryType": primary}
    return msgspec.convert({**body, "value": plain(primary, structs) | changes}, TypedDataOrder)


def with_witness(spelled: str, **changes: Any) -> TypedDataOrder:
    """A transfer by Permit2 with this witness."""
    name = spelled.split("(", 1)[0]
    fields = f"TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,{name} witness"
    permissions = "TokenPermissions(address token,uint256 amount)"
    return sample(f"PermitWitnessTransferFrom({fields}){permissions}{spelled}", **changes)


def read_effects(order: TypedDataOrder) -> tuple[Effect, ...]:
    """Read what it lets others do with what is ours."""
    return subject_of(read(order), US).effects


def kind(begin: str) -> str:
    """The type string of a kind that is read."""
    (found,) = [spelled for spelled in (*READERS, *CALLS, *WITNESSES) if spelled.startswith(begin)]
    return found
