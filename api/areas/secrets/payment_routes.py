"""Make and change payment routes; the signer seals what says who may be paid."""

from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.secrets.types import NewPaymentRouteBody, PaymentRouteChangeBody
from custody.credentials import payment_rules as rules
from custody.credentials.payment_routes import PaymentRouteFields
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.signer.payment_routes import ChangePaymentRoute, CreatePaymentRoute, PaymentRoute

_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(PaymentRouteFields)}


async def create(ports: Ports, caller: TenantCaller, body: NewPaymentRouteBody) -> Answered[PaymentRoute]:
    """Make a route. Checked here for an early answer; the signer's check is what counts."""
    said = PaymentRouteFields(**msgspec.structs.asdict(body))
    fields = rules.check(said, allow_broad=ports.allow_broad_routes, allow_addresses=True)
    return await ports.workers.ask(CreatePaymentRoute(fields), caller)


async def change(
    ports: Ports, caller: TenantCaller, route: str, body: PaymentRouteChangeBody
) -> Answered[PaymentRoute]:
    """Change some fields of a route; the signer, which knows the others, checks them together."""
    changes: dict[str, Any] = {
        name: msgspec.to_builtins(value)
        for field, name in _NAMES.items()
        if (value := getattr(body, field)) is not UNSET
    }
    return await ports.workers.ask(ChangePaymentRoute(route, changes), caller)
