"""The rules for a payment route: its assets and addresses in full, and in one spelling."""

import msgspec

from custody.chains import families
from custody.credentials.payment_routes import PaymentRouteFields
from custody.credentials.rules import Complaint, Complaints
from custody.kit.errors import Invalid
from custody.kit.shapes import MAX_UINT256


def check(fields: PaymentRouteFields, *, allow_broad: bool, allow_addresses: bool = False) -> PaymentRouteFields:
    """The fields as they are stored, or InvalidRoute naming each field that is wrong and why."""
    complaints = Complaints()
    said = complaints.read_place(fields, allow_broad=allow_broad, allow_addresses=allow_addresses)
    prices = complaints.read("maxPerCall", lambda: _read_prices(fields.max_per_call))
    payees = complaints.read("payTo", lambda: _read_payees(fields.pay_to))
    complaints.read("schemes", lambda: _check_schemes(fields.schemes))
    complaints.end()
    assert prices is not None  # noqa: S101 - `end` raises otherwise
    assert payees is not None  # noqa: S101 - the same
    return msgspec.structs.replace(said, max_per_call=prices, pay_to=payees)


def _read_prices(sent: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text, amount in sent.items():
        named = (family.parse_asset(text) for family in families.all_families())
        asset = next((one for one in named if one is not None), None)
        if asset is None:
            raise Complaint("Name each asset in full, such as evm:8453:0x..., or solana:<mint>.")
        if asset in found:
            raise Complaint("Name each asset once.")
        if not 0 < int(amount) <= MAX_UINT256:
            raise Complaint("An amount is at least 1 and at most 2^256-1.")
        found[asset] = amount
    return found


def _read_payees(sent: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for text in sent:
        family = families.of_address(text)
        try:
            address = family.parse_address(text) if family is not None else None
        except Invalid as problem:
            raise Complaint(problem.message) from None
        if address is None:
            raise Complaint("It is no address of a chain that this service knows.")
        found.append(address)
    if len(set(found)) != len(found):
        raise Complaint("Name each address once.")
    return tuple(found)


def _check_schemes(schemes: tuple[str, ...]) -> None:
    if len(set(schemes)) != len(schemes):
        raise Complaint("Name each scheme once.")
