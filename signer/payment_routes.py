"""Payment routes: what the proxy may pay for and to whom, each under a MAC as credential routes are."""

from datetime import datetime

import msgspec

from custody.credentials import payment_rules as rules
from custody.credentials.payment_routes import PaymentRouteFields
from custody.credentials.rules import InvalidRoute
from custody.kit import clock, ids
from custody.kit.quotas import check as check_quota
from custody.kit.quotas import excess
from custody.payments.limits import Limits
from custody.protocol.signer.payment_routes import (
    ChangePaymentRoute,
    CreatePaymentRoute,
    DeletedPaymentRoute,
    DeletePaymentRoute,
    PaymentRoute,
)
from custody.protocol.signer.refusals import CredentialsMoving, PaymentRouteAbsent, UnknownRouteField
from custody.worker.call import Call
from custody.worker.proven import ProvenTenant
from custody.worker.sealing import Sealer, fields
from signer.context import Signer
from signer.credential_routes import MAX_ROUTES
from signer.credentials import TRIES, changing, turn

PAYMENT_ROUTE_MAC = "payment-route-mac"
_USAGE = "SELECT * FROM usage_read($1)"
_READ = "SELECT * FROM payment_route_read($1, $2)"
_CREATE = "SELECT create_payment_route($1, $2, $3, $4, $5, $6, $7, $8)"
_CHANGE = "SELECT change_payment_route($1, $2, $3, $4, $5, $6, $7, $8)"
_DELETE = "SELECT delete_payment_route($1, $2, $3, $4)"
_NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(PaymentRouteFields))


def seal(sealer: Sealer, tenant: str, route: str, said: PaymentRouteFields) -> tuple[str, bytes]:
    """The stored text of a route and its MAC."""
    text = msgspec.json.encode(said, order="sorted").decode()
    return text, sealer.mac(PAYMENT_ROUTE_MAC, tenant, fields(tenant, route, text))


def open_sealed(sealer: Sealer, tenant: str, route: str, stored: tuple[str, bytes]) -> PaymentRouteFields:
    """Read what a stored route says, or Tampered; `stored` are its text and its MAC."""
    text, mac = stored
    sealer.check_mac(mac, PAYMENT_ROUTE_MAC, tenant, fields(tenant, route, text))
    return msgspec.json.decode(text, type=PaymentRouteFields)


async def create(signer: Signer, message: CreatePaymentRoute, call: Call[ProvenTenant]) -> PaymentRoute:
    """Seal a route. Payment routes and credential routes count together."""
    tenant, route, now = call.caller.tenant, ids.new_uuid(), clock.now()
    said = rules.check(
        message.fields,
        allow_broad=signer.allow_broad_secret_routes,
        allow_addresses=signer.allow_address_routes,
    )
    outcome = _show(route, said, now)
    text, mac = seal(signer.sealer, tenant, route, said)
    async with turn(signer, tenant) as connection:
        used = await connection.fetchrow(_USAGE, tenant)
        check_quota("credential_routes", used["credential_routes"], signer.quotas.limits.of(tenant).credential_routes)
        told = changing(call, outcome, hostPattern=said.host_pattern)
        result = await connection.fetchval(_CREATE, *told, route, text, said.priority, mac, now)
    if result == "full":
        raise excess("credential_routes", MAX_ROUTES, MAX_ROUTES)
    return outcome


async def change(signer: Signer, message: ChangePaymentRoute, call: Call[ProvenTenant]) -> PaymentRoute:
    """Seal a route again with some of its fields changed; what is not named stays."""
    if unknown := sorted(message.changes.keys() - _NAMES):
        raise UnknownRouteField(f"A payment route has no field {unknown[0][:128]!r}.", fields=[unknown[0][:128]])
    tenant, route = call.caller.tenant, message.route
    async with turn(signer, tenant) as connection:
        for _ in range(TRIES):
            row = await connection.fetchrow(_READ, tenant, route)
            if row is None:
                raise PaymentRouteAbsent
            # Opened before it is changed: sealing it again must not make a route good that the signer never wrote.
            old = open_sealed(signer.sealer, tenant, route, (row["fields"], row["mac"]))
            said = _merge(signer, old, message)
            outcome = _show(route, said, row["created_at"])
            text, mac = seal(signer.sealer, tenant, route, said)
            told = changing(call, outcome, hostPattern=said.host_pattern, changed=sorted(message.changes))
            result = await connection.fetchval(_CHANGE, *told, route, row["mac"], text, said.priority, mac)
            if result == "done":
                return outcome
    raise CredentialsMoving


async def delete(signer: Signer, message: DeletePaymentRoute, call: Call[ProvenTenant]) -> DeletedPaymentRoute:
    """Delete a route; one that was tampered with too."""
    outcome = DeletedPaymentRoute(message.route)
    async with turn(signer, call.caller.tenant) as connection:
        result = await connection.fetchval(_DELETE, *changing(call, outcome), message.route)
    if result == "absent":
        raise PaymentRouteAbsent
    return outcome


def _merge(signer: Signer, old: PaymentRouteFields, message: ChangePaymentRoute) -> PaymentRouteFields:
    try:
        new = msgspec.convert(msgspec.to_builtins(old) | message.changes, PaymentRouteFields)
    except msgspec.ValidationError as problem:
        raise InvalidRoute(f"The payment route is not valid: {problem}.") from None
    # A switch that was turned off later binds what is written again, not what stands.
    same_host = new.host_pattern == old.host_pattern
    return rules.check(
        new,
        allow_broad=signer.allow_broad_secret_routes or same_host,
        allow_addresses=signer.allow_address_routes or same_host,
    )


def _show(route: str, said: PaymentRouteFields, created_at: datetime) -> PaymentRoute:
    return PaymentRoute(id=route, created_at=clock.iso(created_at), **msgspec.structs.asdict(said))


def limits_of(said: PaymentRouteFields) -> Limits:
    """The limits that a route says."""
    return Limits(
        max_per_call={asset: int(amount) for asset, amount in said.max_per_call.items()},
        pay_to=frozenset(said.pay_to),
        schemes=frozenset(said.schemes),
        allow_unknown_pay_to=said.allow_unknown_pay_to,
    )
