"""Deliveries: what was sent where, and what is to be sent again."""

from api.areas.webhooks import export as exporting
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answer_kinds import Document
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed
from custody.ports import Ports
from custody.protocol.identity.refusals import (
    WebhookAbsent,
)
from custody.protocol.identity.webhooks import Delivery, ReplayDelivery, RetryDelivery
from custody.webhooks import store
from custody.webhooks.types import DeliveryQuery, ExportQuery

routes = Routes("/webhooks", tag="Webhooks")


@routes.get("/<webhook_id>/deliveries", who=admin_mfa("webhooks"), fails=(WebhookAbsent,))
async def list_deliveries(
    ports: Ports, caller: SessionCaller, webhook_id: str, query: DeliveryQuery
) -> Listed[Delivery]:
    """List the deliveries to an endpoint, newest first, without payload and URL."""
    return await store.deliveries_of(ports.pool, caller.tenant, webhook_id, query)


@routes.get("/<webhook_id>/deliveries/export", who=admin_mfa("webhooks"), fails=(WebhookAbsent,), media="text/csv")
async def export_deliveries(ports: Ports, caller: SessionCaller, webhook_id: str, query: ExportQuery) -> Document:
    """Get the same as CSV, safe against spreadsheet formulas."""
    return await exporting.export(ports.pool, caller.tenant, webhook_id, query)


@routes.post("/deliveries/<delivery_id>/retry", who=asking(RetryDelivery))
async def retry_delivery(ports: Ports, caller: SessionCaller, delivery_id: str) -> Answered[Delivery]:
    """Retry a failed delivery at once, if it has attempts left.

    Refused if its endpoint was deleted, is disabled or has a different URL now.
    """
    return await ports.workers.ask(RetryDelivery(delivery_id), caller)


@routes.post("/deliveries/<delivery_id>/replay", who=asking(ReplayDelivery))
async def replay_delivery(ports: Ports, caller: SessionCaller, delivery_id: str) -> Answered[Delivery]:
    """Replay the event of a delivered or failed delivery as a new delivery with a new signature.

    Requires that its endpoint exists, is enabled, has the same URL and is subscribed to the event.
    """
    return await ports.workers.ask(ReplayDelivery(delivery_id), caller)
