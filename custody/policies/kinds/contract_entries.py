"""The entries of a `contract-allowlist`: as sent, and as judged."""

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.evm.address import parse_address
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Call, TypedFields
from custody.kit.described import described
from custody.kit.shapes import ChainId, DecimalAmount
from custody.policies.assets import parse_optional_amount
from custody.policies.kind import sent_or
from custody.policies.kinds.argument_conditions import Conditions, Where, conditions_on
from custody.policies.types import InvalidPolicy

Parties = Literal["recipientAllowlist", "recipientBlocklist", "spenderAllowlist", "spenderBlocklist"]
Field = Parties | Literal["maxAmount", "maxNativeValueWei", "where"]
type Told = Callable[..., str]
# So many addresses of a list are named where another one stands in an order.
_SHOWN = 3
Unread = Literal["ask", "allow"]
DEFAULT_UNREAD: Unread = "ask"
Selector = Annotated[str, Meta(min_length=8, max_length=10, pattern=r"^(0x)?[0-9a-fA-F]{8}\Z")]


class ConstraintConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Constraints on one listed call. A call whose recipient or amount is unknown fails a constraint on it."""

    recipient_allowlist: Annotated[list[str] | UnsetType | None, described("Only these may receive.")] = UNSET
    recipient_blocklist: Annotated[list[str] | UnsetType | None, described("These may not receive.")] = UNSET
    spender_allowlist: Annotated[list[str] | UnsetType | None, described("Only these may be approved to spend.")] = (
        UNSET
    )
    spender_blocklist: Annotated[list[str] | UnsetType | None, described("These may not be approved to spend.")] = UNSET
    max_amount: Annotated[
        DecimalAmount | UnsetType | None,
        described(
            "The most that one call moves or approves; up to it the token is covered.",
            unit="smallest unit of the token",
        ),
    ] = UNSET
    max_native_value_wei: Annotated[
        DecimalAmount | UnsetType | None,
        described("The most sent along with one call, or in a plain payment to the contract.", unit="wei"),
    ] = UNSET
    abi: Annotated[
        Annotated[str, Meta(max_length=1024)] | UnsetType,
        described(
            "The function that `where` is about: `swap(Order order,uint256 least)Order(address to,uint256 amount)`."
        ),
    ] = UNSET
    where: Annotated[
        Where | UnsetType,
        described(
            "Conditions on the arguments; all must hold. An argument that cannot be read keeps none.", default=[]
        ),
    ] = UNSET


class TypedDataConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One kind of typed data."""

    type: Annotated[Annotated[str, Meta(max_length=4096)], described("The whole type string, as EIP-712 hashes it.")]
    where: Annotated[Where | UnsetType, described("Conditions on the fields; all must hold.", default=[])] = UNSET


class EntryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One listed contract. Several entries may name one contract; one that permits is enough."""

    address: Annotated[str, described("The contract.")]
    selectors: Annotated[
        list[Selector],
        described("The functions that may be called: the first 4 bytes of calldata in hex; at least one."),
    ]
    chain_id: Annotated[
        ChainId | UnsetType | None, described("The chain on which it is listed. Without it: every chain.")
    ] = UNSET
    constraints: Annotated[
        dict[Selector, ConstraintConfig] | UnsetType,
        described("By selector, what its calls may do. Without constraints a call may do anything.", default={}),
    ] = UNSET
    unread: Annotated[
        Unread | UnsetType,
        described(
            "Treatment of bytes that the service cannot read, in a call or document that is listed. `ask`: a person "
            "decides. `allow`: they pass, unless a rule limits this contract as an asset or names addresses.",
            default=DEFAULT_UNREAD,
        ),
    ] = UNSET
    typed_data: Annotated[
        list[TypedDataConfig] | UnsetType,
        described("The kinds of typed data that may be signed for the contract. Without it: every kind."),
    ] = UNSET


class Constraint(msgspec.Struct, frozen=True):
    """Limits on a listed call; None does not restrict, an empty allowlist permits nobody."""

    recipients: frozenset[str] | None = None
    no_recipients: frozenset[str] | None = None
    spenders: frozenset[str] | None = None
    no_spenders: frozenset[str] | None = None
    max_amount: int | None = None
    max_native: int | None = None
    where: Conditions | None = None

    def keeps(self, call: Call) -> bool:
        """Say whether a call does only what is allowed here."""
        return self is UNCONSTRAINED or self.breach(call) is None

    def breach(self, call: Call) -> Field | None:
        """The first field that a call does not keep."""
        for field, who, allowed, blocked in (
            ("recipient", call.recipient, self.recipients, self.no_recipients),
            ("spender", call.spender, self.spenders, self.no_spenders),
        ):
            if allowed is not None and who not in allowed:
                return "recipientAllowlist" if field == "recipient" else "spenderAllowlist"
            if blocked is not None and (who is None or who in blocked):
                return "recipientBlocklist" if field == "recipient" else "spenderBlocklist"
        if self.max_amount is not None and (call.amount is None or call.amount > self.max_amount):
            return "maxAmount"
        if self.max_native is not None and call.native_value > self.max_native:
            return "maxNativeValueWei"
        return None if self.where is None or self.where.breach_in_call(call.arguments) is None else "where"

    def names_recipients(self) -> bool:
        """Say whether somebody may not receive; an empty blocklist blocks nobody."""
        return self.recipients is not None or bool(self.no_recipients)

    def why(self, call: Call, told: Told) -> str:
        """Say which limit a call breaks, and what would pass; `told` writes an amount of an asset."""
        field = self.breach(call)
        if self.where is not None and field == "where":
            return self.where.breach_in_call(call.arguments) or ""
        if field == "maxNativeValueWei":
            sent, most = told(call.native_value, EVM_NATIVE), told(self.max_native or 0, EVM_NATIVE)
            return f"it sends {sent} along, above `{field}` of {most}"
        if field == "maxAmount":
            asset = f"evm:{call.chain_id}:{call.contract}"
            most = told(self.max_amount or 0, asset)
            sent = "no amount that can be read" if call.amount is None else told(call.amount, asset, brief=True)
            return f"it moves or allows {sent}, and `{field}` is {most}"
        role = "recipient" if field in ("recipientAllowlist", "recipientBlocklist") else "spender"
        allowed = self.recipients if role == "recipient" else self.spenders
        who = call.recipient if role == "recipient" else call.spender
        if who is None:
            return f"it names no {role} that can be read, and `{field}` restricts it"
        if field in ("recipientBlocklist", "spenderBlocklist"):
            return f"the {role} {who} is in `{field}`"
        shown = sorted(allowed or ())
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        return f"the {role} {who} is not in `{field}` ({', '.join(shown[:_SHOWN]) + more or 'which is empty'})"

    def tightens(self, wide: "Constraint") -> bool:
        """Say whether every call that keeps this one also keeps the wide one, and no more is covered."""
        # A `maxAmount` also covers the token, so it may neither appear nor vanish, only fall.
        both = (wide.max_amount is None) == (self.max_amount is None)
        return (
            both
            and (wide.max_amount or 0) >= (self.max_amount or 0)
            and (wide.max_native is None or (self.max_native is not None and self.max_native <= wide.max_native))
            and _shrinks(wide.recipients, self.recipients)
            and _shrinks(wide.spenders, self.spenders)
            and _grows(wide.no_recipients, self.no_recipients)
            and _grows(wide.no_spenders, self.no_spenders)
            and (wide.where is None or (self.where is not None and self.where.tightens(wide.where)))
        )


UNCONSTRAINED = Constraint()


class Entry(msgspec.Struct, frozen=True):
    """One listed contract: its selectors, each with its constraint; on one chain, or on all of them."""

    address: str
    chain_id: int | None
    selectors: dict[str, Constraint]
    allows_unread: bool = False
    # By type string the kinds of typed data that may be signed; None: every kind.
    typed: dict[str, Conditions] | None = None

    def refusal(self, document: TypedFields | None) -> str | None:
        """Say why typed data is none of what is listed here, or None."""
        if self.typed is None:
            return None
        if document is None or (conditions := self.typed.get(document.type)) is None:
            return "its type is not in `typedData`"
        return conditions.breach(document.fields)

    def trusts(self) -> bool:
        """Say whether no selector has a constraint."""
        return all(constraint == UNCONSTRAINED for constraint in self.selectors.values())

    def native_caps(self) -> list[int]:
        """The caps on native value that hold for plain payments too."""
        return [one.max_native for one in self.selectors.values() if one.max_native is not None]

    def contains(self, narrow: "Entry") -> bool:
        """Say whether this entry permits all that a narrow one does, and covers all that it covers."""
        if narrow.address != self.address or self.chain_id not in (None, narrow.chain_id):
            return False
        if (narrow.allows_unread and not self.allows_unread) or not _all_within(self.typed, narrow.typed):
            return False
        # Typed data must keep every constraint of an entry, so dropping a constrained selector would free it.
        kept = all(name in narrow.selectors for name, one in self.selectors.items() if one != UNCONSTRAINED)
        return kept and all(
            name in self.selectors and one.tightens(self.selectors[name]) for name, one in narrow.selectors.items()
        )


def entry_of(sent: EntryConfig) -> Entry:
    """Read an entry strictly, or raise InvalidPolicy."""
    limits = {} if sent.constraints is UNSET else sent.constraints
    constraints = {_selector(name): _constraint(_selector(name), one) for name, one in limits.items()}
    names = [_selector(name) for name in sent.selectors]
    if len(constraints) < len(limits):
        raise InvalidPolicy(f"`constraints` of {sent.address} names a selector twice")
    if unknown := constraints.keys() - set(names):
        raise InvalidPolicy(f"`constraints` names {', '.join(sorted(unknown))}, which `selectors` does not list")
    if not names:
        raise InvalidPolicy(f"`selectors` of {sent.address} is empty; list the 4-byte selectors that may be called")
    selectors = {name: constraints.get(name, UNCONSTRAINED) for name in names}
    chain_id = None if sent.chain_id is UNSET else sent.chain_id
    kinds = sent_or(sent.typed_data, [])
    typed = {one.type: conditions_on(one.type, sent_or(one.where, [])) for one in kinds}
    if len(typed) < len(kinds):
        raise InvalidPolicy(f"`typedData` of {sent.address} names a type twice")
    listed = None if sent.typed_data is UNSET else typed
    return Entry(parse_address(sent.address), chain_id, selectors, sent.unread == "allow", listed)


def _selector(text: str) -> str:
    return "0x" + text.lower().removeprefix("0x")


def _constraint(selector: str, sent: ConstraintConfig) -> Constraint:
    abi, where = sent_or(sent.abi, ""), sent_or(sent.where, [])
    if bool(abi) != bool(where):
        raise InvalidPolicy(f"give `where` of {selector} an `abi`, which says how the arguments are read, or neither")
    return Constraint(
        _addresses(sent.recipient_allowlist),
        _addresses(sent.recipient_blocklist),
        _addresses(sent.spender_allowlist),
        _addresses(sent.spender_blocklist),
        parse_optional_amount(sent.max_amount, "maxAmount"),
        parse_optional_amount(sent.max_native_value_wei, "maxNativeValueWei"),
        conditions_on(abi.replace(", ", ","), where, selector) if abi else None,
    )


def _all_within(wide: dict[str, Conditions] | None, narrow: dict[str, Conditions] | None) -> bool:
    if wide is None:
        return True
    return narrow is not None and all(name in wide and one.tightens(wide[name]) for name, one in narrow.items())


def _addresses(sent: list[str] | UnsetType | None) -> frozenset[str] | None:
    return None if sent is None or sent is UNSET else frozenset(parse_address(address) for address in sent)


def _shrinks(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _grows(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and wide <= narrow)
