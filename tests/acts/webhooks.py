"""Acts on webhook endpoints, their deliveries and the stream of events."""

from typing import TYPE_CHECKING

import msgspec

from tests.acts.act import ABSENT, ADMINS, PUBLIC, SESSION, SIDE, TEAM, Act, Journey
from tests.fixtures.eventually import eventually

if TYPE_CHECKING:
    from tests.table.world import World

NOBODY_LISTENS = "http://127.0.0.1:9/"
_STOCK, _FEW = "stock", 12


def _new_webhook(world: "World") -> Journey:
    # A tenant has few.
    for webhook in world.owner.ok("GET", "/webhooks"):
        if webhook["description"] != _STOCK:
            world.owner.delete(f"/webhooks/{webhook['id']}")
    return Journey(world.owner, body={"url": NOBODY_LISTENS})


def _webhook(world: "World") -> Journey:
    made = world.owner.ok("POST", "/webhooks", _new_webhook(world).body)
    return Journey(world.owner, {"webhook_id": made["id"]})


def _change_webhook(world: "World") -> Journey:
    return msgspec.structs.replace(_webhook(world), body={"maxRetries": 3})


def _failed_delivery(world: "World") -> Journey:
    """One that may be tried again; several are made at once, for it takes a moment."""
    if not world.failed_deliveries:
        fields = {"url": NOBODY_LISTENS, "description": _STOCK, "maxRetries": 10, "retryBackoffMs": 86_400_000}
        path = f"/webhooks/{world.owner.ok('POST', '/webhooks', fields)['id']}/deliveries?status=failed"
        for _ in range(_FEW):
            world.agent.sign()
        failed = eventually(lambda: world.owner.ok("GET", path), lambda found: len(found) >= _FEW)
        world.failed_deliveries += [one["id"] for one in failed]
    return Journey(world.owner, {"delivery_id": world.failed_deliveries.pop()})


ACTS = (
    Act("GET /webhooks.json", PUBLIC),
    Act(
        "POST /webhooks",
        SESSION,
        ADMINS,
        "webhooks",
        command="CreateWebhook",
        nothing={"url": "no address"},
        journey=_new_webhook,
    ),
    Act("GET /webhooks", SESSION, ADMINS, "webhooks"),
    Act(
        "PUT /webhooks/{id}",
        SESSION,
        ADMINS,
        "webhooks",
        command="ChangeWebhook",
        nothing={"webhook": ABSENT},
        journey=_change_webhook,
    ),
    Act(
        "DELETE /webhooks/{id}",
        SESSION,
        ADMINS,
        "webhooks",
        command="DeleteWebhook",
        nothing={"webhook": ABSENT},
        journey=_webhook,
    ),
    Act("GET /webhooks/{id}/deliveries", SESSION, ADMINS, "webhooks", journey=_webhook),
    Act("GET /webhooks/{id}/deliveries/export", SESSION, ADMINS, "webhooks", journey=_webhook),
    Act(
        "POST /webhooks/deliveries/{id}/retry",
        SESSION,
        ADMINS,
        "webhooks",
        command="RetryDelivery",
        nothing={"delivery": ABSENT},
        journey=_failed_delivery,
    ),
    Act(
        "POST /webhooks/deliveries/{id}/replay",
        SESSION,
        ADMINS,
        "webhooks",
        command="ReplayDelivery",
        nothing={"delivery": ABSENT},
        journey=_failed_delivery,
    ),
    Act(
        "POST /webhooks/{id}/test",
        SESSION,
        ADMINS,
        "webhooks",
        command="SendWebhookTest",
        nothing={"webhook": ABSENT},
        journey=_webhook,
    ),
    Act("GET /events", SIDE, TEAM, journey=lambda world: Journey(world.tenant, query="follow=false")),
    Act("GET /webhooks/{id}", SESSION, ADMINS, "webhooks", journey=_webhook),
    Act(
        "POST /webhooks/{id}/roll-secret",
        SESSION,
        ADMINS,
        "webhooks",
        command="RollWebhookSecret",
        nothing={"webhook": ABSENT},
        journey=lambda world: msgspec.structs.replace(_webhook(world), body={"overlapSeconds": 60}),
    ),
    Act(
        (),
        PUBLIC,
        command="SignDelivery",
        nothing={"tenant": "t", "endpoint": ABSENT, "delivery": ABSENT, "timestamp": 1, "body": b"{}"},
        senders="scheduler",
    ),
)
