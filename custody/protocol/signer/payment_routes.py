"""Payment routes: which requests the proxy may pay for, how much, and to whom."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.credentials.payment_routes import MaxPerCall, PaymentRouteFields, PayTo, Schemes
from custody.credentials.rules import InvalidRoute
from custody.credentials.types import RouteAgents
from custody.identity.roles import BUILDERS
from custody.kit.described import Id, Instant, described
from custody.kit.errors import DailyQuotaExceeded, Frozen, QuotaExceeded
from custody.kit.shapes import Uuid
from custody.payments.refusals import OfferUnpayable, PaymentExpired, PaymentRefused
from custody.protocol.command import AGENT, TENANT, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals
from custody.protocol.signer.outcomes import Queued, Refused


class PaymentRoute(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A payment route of the tenant."""

    id: Annotated[Id, described("The route's id.")]
    host_pattern: Annotated[str, described("The hosts it matches.")]
    path_pattern: Annotated[str, described("The paths it matches.")]
    method: Annotated[str, described("The HTTP method it matches, or `*` for all.")]
    priority: Annotated[int, described("Of several that match, the highest wins.")]
    enabled: Annotated[bool, described("True if the route is used.")]
    agents: Annotated[RouteAgents, described("The agents that it is for; none: all of the tenant.")] = ()
    max_per_call: Annotated[MaxPerCall, described("The most that one call may cost, by asset, in its smallest unit.")]
    pay_to: Annotated[PayTo, described("The addresses that may be paid.")] = ()
    schemes: Annotated[Schemes, described("The schemes of x402 that it pays by.")] = ("exact",)
    allow_unknown_pay_to: Annotated[
        bool, described("True if an address may be paid that neither `payTo` nor a rule of the agent names.")
    ] = False
    created_at: Annotated[Instant, described("Time of creation.")]


class DeletedPaymentRoute(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


class PaidRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request that an agent sent through the proxy, and that its server wants to be paid for."""

    method: Annotated[str, Meta(min_length=1, max_length=20)]
    host: Annotated[str, Meta(min_length=1, max_length=260)]
    path: Annotated[str, Meta(min_length=1, max_length=32_768)]
    body_hash: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class RoutePaid(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A payment that is committed, and the header that carries it."""

    tx_id: str
    header: str
    value: str
    amount: str
    asset: str

    def __repr__(self) -> str:
        return f"RoutePaid({self.tx_id})"


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("payment_route.created",))
@refuses(refusals.CredentialsMoving, InvalidRoute, QuotaExceeded)
class CreatePaymentRoute(Command[PaymentRoute], frozen=True):
    """Make a payment route, sealed by the signer, because it decides who may be paid."""

    fields: PaymentRouteFields


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("payment_route.changed",))
@refuses(refusals.CredentialsMoving, InvalidRoute, refusals.PaymentRouteAbsent, refusals.UnknownRouteField)
class ChangePaymentRoute(Command[PaymentRoute], frozen=True):
    """Change the fields that `changes` names, spelled as in `PaymentRouteFields`."""

    route: Uuid
    changes: dict[str, Any]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("payment_route.deleted",))
@refuses(refusals.CredentialsMoving, refusals.PaymentRouteAbsent)
class DeletePaymentRoute(Command[DeletedPaymentRoute], frozen=True):
    """Delete a payment route."""

    route: Uuid


@command(
    "signer",
    senders=("proxy",),
    proofs=AGENT,
    repeatable=True,
    replays_itself=True,
    audit=("tx.signed", "tx.queued", "tx.refused"),
)
@refuses(order_refusals.Busy, order_refusals.KeyTampered, order_refusals.PolicyTampered, refusals.PaymentRouteAbsent)
@refuses(DailyQuotaExceeded, Frozen, QuotaExceeded, OfferUnpayable, PaymentExpired, PaymentRefused)
class PayForRoute(Command[RoutePaid | Queued | Refused], frozen=True, kw_only=True):
    """Pay what a server demands of a request that a payment route of the agent's tenant covers."""

    route: Uuid
    tx_id: Uuid
    # JSON, as it came.
    demand: Annotated[bytes, Meta(max_length=16_384)]
    request: PaidRequest
    # Of a priced call: what it was charged comes back once it is paid for.
    charge: Uuid | None = None

    def __repr__(self) -> str:
        return f"PayForRoute({self.route}, {self.tx_id})"
