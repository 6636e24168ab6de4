"""Deliveries: what was sent where, and what is to be sent again. Spec 2/3.2, 4.7."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.webhooks import deliveries as stories
from custody.webhooks import store
from custody.webhooks.types import Delivery, DeliveryAbsent, DeliveryQuery, ExportQuery, WebhookAbsent

routes = Routes("/webhooks", tag="Webhooks")


@routes.get(
    "/<webhook_id>/deliveries", who=admin_mfa("webhooks"), returns={200: list[Delivery]}, fails=(WebhookAbsent,)
)
async def list_all(ports: Ports, caller: SessionCaller, webhook_id: str, query: DeliveryQuery) -> Any:
    """List the deliveries to an endpoint, newest first; what they say and where they go is not shown."""
    return await store.deliveries_of(ports.pool, caller.tenant, webhook_id, query)


@routes.get(
    "/<webhook_id>/deliveries/export", who=admin_mfa("webhooks"), returns={200: str}, fails=(WebhookAbsent,),
    media="text/csv",
)  # fmt: skip
async def export(ports: Ports, caller: SessionCaller, webhook_id: str, query: ExportQuery) -> Any:
    """Get the same as CSV, in which no cell is a formula."""
    return await stories.export(ports.pool, caller.tenant, webhook_id, query)


@routes.post(
    "/deliveries/<delivery_id>/retry", who=admin_mfa("webhooks"), returns={200: Delivery}, fails=(DeliveryAbsent,)
)  # fmt: skip
async def retry(ports: Ports, caller: SessionCaller, delivery_id: str) -> Any:
    """Try a failed delivery again at once, as long as its attempts are not used up.

    Not if its endpoint was deleted, is disabled or has another address now.
    """
    return await stories.retry(ports, caller, delivery_id)


@routes.post(
    "/deliveries/<delivery_id>/replay", who=admin_mfa("webhooks"), returns={200: Delivery}, fails=(DeliveryAbsent,)
)  # fmt: skip
async def replay(ports: Ports, caller: SessionCaller, delivery_id: str) -> Any:
    """Send the event of a delivered or failed delivery once more: a new delivery, signed anew.

    Only if its endpoint still exists, is enabled, has the same address and is subscribed to the event.
    """
    return await stories.replay(ports, caller, delivery_id)
