"""Payment routes: which requests of agents the proxy may pay for."""

from api.areas.secrets import payment_routes as use_cases
from api.areas.secrets import store
from api.areas.secrets.types import NewPaymentRouteBody, PaymentRouteChangeBody
from api.http.bodies import MAX_ROUTE_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.signer.payment_routes import (
    ChangePaymentRoute,
    CreatePaymentRoute,
    DeletedPaymentRoute,
    DeletePaymentRoute,
    PaymentRoute,
)
from custody.protocol.signer.refusals import PaymentRouteAbsent

routes = Routes("/payment-routes", tag="Payment routes")


@routes.post("", who=asking(CreatePaymentRoute), status=201, max_body=MAX_ROUTE_BODY)
async def create_payment_route(ports: Ports, caller: TenantCaller, body: NewPaymentRouteBody) -> Answered[PaymentRoute]:
    """Create a payment route: a request that matches it is paid for where its server asks for it (402)."""
    return await use_cases.create(ports, caller, body)


@routes.get("", who=tenant_read, private=True)
async def list_payment_routes(ports: Ports, caller: TenantCaller, query: Page) -> Listed[PaymentRoute]:
    """List the tenant's payment routes, newest first."""
    return await store.payment_routes_of(ports.pool, caller.tenant, query)


@routes.get("/<payment_route_id>", who=tenant_read, fails=(PaymentRouteAbsent,), private=True)
async def get_payment_route(ports: Ports, caller: TenantCaller, payment_route_id: str) -> PaymentRoute:
    """Get one payment route."""
    return await store.payment_route(ports.pool, caller.tenant, payment_route_id)


@routes.put("/<payment_route_id>", who=asking(ChangePaymentRoute), max_body=MAX_ROUTE_BODY)
async def change_payment_route(
    ports: Ports, caller: TenantCaller, payment_route_id: str, body: PaymentRouteChangeBody
) -> Answered[PaymentRoute]:
    """Change some fields of a payment route; omitted fields stay as they are."""
    return await use_cases.change(ports, caller, payment_route_id, body)


@routes.delete("/<payment_route_id>", who=asking(DeletePaymentRoute))
async def delete_payment_route(
    ports: Ports, caller: TenantCaller, payment_route_id: str
) -> Answered[DeletedPaymentRoute]:
    """Delete a payment route; what it paid for stays paid."""
    return await ports.workers.ask(DeletePaymentRoute(payment_route_id), caller)
