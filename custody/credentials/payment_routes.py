"""A payment route as everybody knows it: which requests may be paid for, how much, to whom."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from custody.credentials.types import RoutePlace
from custody.kit.shapes import DecimalAmount, Uuid

MAX_PAY_TO: Final = 16
MAX_ASSETS: Final = 16
# Of x402: how a payment is made. An `upto` payment counts as the most that it allows.
Scheme = Literal["exact", "upto"]
AssetText = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+\Z")]
PayeeText = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+\Z")]
MaxPerCall = Annotated[dict[AssetText, DecimalAmount], Meta(min_length=1, max_length=MAX_ASSETS)]
PayTo = Annotated[tuple[PayeeText, ...], Meta(max_length=MAX_PAY_TO)]
Schemes = Annotated[tuple[Scheme, ...], Meta(min_length=1, max_length=2)]


class PaymentRouteFields(RoutePlace, frozen=True, kw_only=True):
    """The fields of a payment route that a tenant decides; under the signer's MAC, because it decides who is paid."""

    # By whole asset names, in the smallest unit.
    max_per_call: MaxPerCall
    pay_to: PayTo = ()
    schemes: Schemes = ("exact",)
    # True: a recipient need not stand in `pay_to`, nor in a rule `approved-addresses`.
    allow_unknown_pay_to: bool = False


class PaymentRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A stored route, as matching and the proxy read it."""

    id: Uuid
    fields: PaymentRouteFields
