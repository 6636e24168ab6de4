"""Webhook endpoints of the tenant, and deliveries to them."""

import asyncio
import time
from typing import Any, Final

import click

from console.wire.answers import convert
from console.wire.shapes_webhooks import Delivery, Endpoint, delivery_state, endpoint_state
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.finding import find
from tenant_command.options import LIMIT, YES, all_of, only_given, split_names
from tenant_command.printing import Column

_PATH: Final = "/webhooks"
_EXAMPLE: Final = "2b1f0a52-6e0e-4a5c-8f5e-0d6a1c9b7e34"
# An attempt takes ten seconds at most, and begins within one or two.
_TEST_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.25
_FIELDS: Final = all_of(
    click.option("--events", metavar="NAMES", help="Only these, with commas between."),
    click.option("--description", metavar="TEXT", help="A note of yours."),
    click.option("--max-retries", "maxRetries", type=int, help="How often a failed delivery is tried again."),
    click.option("--retry-backoff-ms", "retryBackoffMs", type=int, help="Milliseconds until it is."),
)


@click.group("webhooks", no_args_is_help=True)
def webhooks() -> None:
    """Have events of the tenant sent to URLs. For an owner or admin who signed in; a tenant key may not."""


@command("list", group=webhooks, example="custody webhooks list")
@LIMIT
async def list_webhooks(call: Call, *, limit: int | None) -> None:
    """List the endpoints, newest first."""
    columns: dict[str, Column] = {
        "URL": "url",
        "STATE": lambda one: endpoint_state(convert(one, Endpoint))[0],
        "EVENTS": lambda one: str(len(one["events"])),
        "RETRIES": "maxRetries",
        "DESCRIPTION": "description",
        "ID": "id",
    }
    nothing = "There are no webhooks. Make one with `custody webhooks add`."
    call.out.rows(await call.every(_PATH, most=limit), columns, nothing=nothing)


@command("add", group=webhooks, example="custody webhooks add https://example.com/in --events tx.pending,tx.failed")
@click.argument("address", metavar="URL")
@_FIELDS
async def add(call: Call, *, address: str, events: str | None, **given: Any) -> None:
    """Send events to URL.

    All of them, unless --events names some. The secret that signs them is shown this once.
    """
    made = await call.send("POST", _PATH, {"url": address, **only_given(events=split_names(events), **given)})
    call.out.show(made, f"Made the webhook {made['id']}.", f"Its secret, shown this once: {made['secret']}")


@command("change", group=webhooks, example=f"custody webhooks change {_EXAMPLE} --disabled")
@click.argument("webhook")
@click.option("--to", "address", metavar="URL", help="Where events go from now on.")
@_FIELDS
@click.option("--all-events", is_flag=True, help="Send every event, later ones too.")
@click.option("--enabled/--disabled", default=None, help="Whether events are sent.")
async def change(
    call: Call, *, webhook: str, address: str | None, events: str | None, all_events: bool, **given: Any
) -> None:
    """Change a webhook; what no option names stays.

    WEBHOOK is its id or URL. What is still on its way to another URL, or to an endpoint that is disabled, is not sent.
    """
    if all_events and events is not None:
        raise click.UsageError("say --events or --all-events")
    body = only_given(url=address, events=split_names(events), **given) | ({"events": None} if all_events else {})
    if not body:
        raise click.UsageError("say what to change")
    made = await call.send("PUT", await _address(call, webhook), body)
    call.out.show(made, f"Changed the webhook {made['id']}.")


@command("delete", group=webhooks, example=f"custody webhooks delete {_EXAMPLE} --yes")
@click.argument("webhook")
@YES
async def delete(call: Call, *, webhook: str, yes: bool) -> None:
    """Delete a webhook with its secret.

    WEBHOOK is its id or URL. What is still on its way is not sent.
    """
    found = await _find(call, webhook)
    call.confirm(f"Delete the webhook to {found['url']}?", assumed=yes)
    call.out.show(await call.send("DELETE", f"{_PATH}/{found['id']}"), f"Deleted the webhook to {found['url']}.")


@command("test", group=webhooks, example=f"custody webhooks test {_EXAMPLE}")
@click.argument("webhook")
async def test(call: Call, *, webhook: str) -> None:
    """Send a `webhook.test`; wait for its outcome.

    WEBHOOK is its id or URL. The status is 1 if the receiver did not take it.
    """
    endpoint = await _address(call, webhook)
    sent = await call.send("POST", f"{endpoint}/test")
    call.out.doing("Waiting for the receiver")
    until = time.monotonic() + _TEST_SECONDS
    while sent["status"] in ("pending", "processing") and time.monotonic() < until:
        await asyncio.sleep(_LOOK_SECONDS)
        page = await call.page(f"{endpoint}/deliveries", eventType="webhook.test", limit=200)
        sent = next((one for one in page.items if one["id"] == sent["id"]), sent)
    call.out.show(sent, f"The test {sent['id']}: {_state(call, sent)}.")
    if sent["status"] != "delivered":
        raise click.exceptions.Exit(1)


@command("deliveries", group=webhooks, example=f"custody webhooks deliveries {_EXAMPLE} --status failed")
@click.argument("webhook")
@click.option("--status", type=click.Choice(("pending", "processing", "delivered", "failed")), help="Only such.")
@click.option("--event", "eventType", metavar="NAME", help="Only of this event.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="How many at most.")
async def deliveries(call: Call, *, webhook: str, **query: Any) -> None:
    """List the newest deliveries.

    WEBHOOK is its id or URL.
    """
    page = await call.page(f"{await _address(call, webhook)}/deliveries", **query)
    columns: dict[str, Column] = {
        "MADE": "createdAt",
        "EVENT": "eventType",
        "STATE": lambda one: _state(call, one),
        "ATTEMPTS": lambda one: f"{one['attempts']} of {one['maxAttempts']}",
        "ID": "id",
    }
    call.out.rows(page.items, columns, nothing="There are no such deliveries.")


@command("retry", group=webhooks, example=f"custody webhooks retry {_EXAMPLE}")
@click.argument("delivery")
@click.option("--replay", is_flag=True, help="Make a new delivery of the same event, of one that was taken too.")
async def retry(call: Call, *, delivery: str, replay: bool) -> None:
    """Send a failed delivery again at once.

    DELIVERY is its id.
    """
    made = await call.send("POST", path("webhooks", "deliveries", delivery, "replay" if replay else "retry"))
    call.out.show(made, f"The delivery {made['id']}: {_state(call, made)}.")


@command("roll-secret", group=webhooks, example=f"custody webhooks roll-secret {_EXAMPLE} --overlap-seconds 3600")
@click.argument("webhook")
@click.option("--overlap-seconds", type=int, help="How long the former secret signs too: a day, unless said.")
async def roll_secret(call: Call, *, webhook: str, overlap_seconds: int | None) -> None:
    """Give a webhook a new secret; it is shown once.

    WEBHOOK is its id or URL.
    """
    body = only_given(overlapSeconds=overlap_seconds)
    made = await call.send("POST", f"{await _address(call, webhook)}/roll-secret", body)
    ends = made.get("formerSecretsEnd") or []
    last = f"Former ones sign beside it until {ends[-1]}." if ends else "No former one signs any more."
    call.out.show(made, f"Its new secret, shown this once: {made['secret']}", last)


async def _find(call: Call, webhook: str) -> dict[str, Any]:
    return await find(call, _PATH, webhook, by="url", what="webhook", word="webhooks")


async def _address(call: Call, webhook: str) -> str:
    return f"{_PATH}/{(await _find(call, webhook))['id']}"


def _state(call: Call, one: dict[str, Any]) -> str:
    return delivery_state(convert(one, Delivery), call.client.now())[0]
