"""Notification channels of the tenant, and what was sent on them."""

import asyncio
import time
from typing import Any, Final

import click

from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.finding import find
from tenant_command.options import LIMIT, YES, all_of, only_given, split_names
from tenant_command.printing import Column

_PATH: Final = "/notification-channels"
_EXAMPLE: Final = "2b1f0a52-6e0e-4a5c-8f5e-0d6a1c9b7e34"
# A message leaves a minute after the one before it at the latest, and its attempt takes ten seconds.
_TEST_SECONDS: Final = 80.0
_LOOK_SECONDS: Final = 0.5
_KINDS: Final = ("slack", "discord", "teams", "telegram", "ntfy", "pagerduty", "apprise", "email")
_OPEN: Final = ("pending", "processing")
_FIELDS: Final = all_of(
    click.option("--events", metavar="NAMES", help="Only of these, with commas between: waiting, frozen, and so on."),
    click.option("--detail", type=click.Choice(("words", "count")), help="What waits, or only how much."),
    click.option("--after-minutes", "afterMinutes", type=int, help="Only what still waits after so many minutes."),
    click.option("--quiet", metavar="START-END@ZONE", help="Hours without messages: 22:00-07:00@Europe/Berlin."),
    click.option("--description", metavar="TEXT", help="A note of yours."),
)
_TOKEN: Final = click.option(
    "--token-file", type=click.File(), help="A file with the token that a topic or server asks for."
)


@click.group("channels", no_args_is_help=True)
def channels() -> None:
    """Have people told of what waits, in chat, push or mail. For an owner or admin who signed in; no key may."""


@command("list", group=channels, example="custody channels list")
@LIMIT
async def list_channels(call: Call, *, limit: int | None) -> None:
    """List the channels, newest first; where one leads is secret."""
    columns: dict[str, Column] = {
        "KIND": "kind",
        "HOST": lambda one: f"{one['host']} ...{one['lastFour']}" if one["lastFour"] else one["host"],
        "STATE": lambda one: "on" if one["enabled"] else "off",
        "AFTER": lambda one: f"{one['afterMinutes']} min",
        "LAST": lambda one: one["lastDeliveredAt"] or "never",
        "DESCRIPTION": "description",
        "ID": "id",
    }
    nothing = "There are no channels. Make one with `custody channels add`."
    call.out.rows(await call.every(_PATH, most=limit), columns, nothing=nothing)


@command("add", group=channels, example="custody channels add slack --target-file - --events waiting")
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--to", metavar="ADDRESS", help="A mail address; another kind's address is secret: give a file.")
@click.option("--target-file", type=click.File(), help="A file with the address of the webhook, topic or server.")
@_TOKEN
@_FIELDS
async def add(call: Call, *, kind: str, to: str | None, target_file: Any, token_file: Any, **given: Any) -> None:
    """Make a channel.

    Every other one is told of it, and the owners by mail.
    """
    if (to is None) == (target_file is None):
        raise click.UsageError("say --to or --target-file")
    target = to if to is not None else target_file.read().strip()
    body = {"kind": kind, "target": target, **_body(token_file=token_file, **given)}
    made = await call.send("POST", _PATH, body)
    call.out.show(made, f"Made the channel {made['id']} to {made['host']}.")


@command("change", group=channels, example=f"custody channels change {_EXAMPLE} --after-minutes 15")
@click.argument("channel")
@click.option("--target-file", type=click.File(), help="A file with the address from now on.")
@_TOKEN
@_FIELDS
@click.option("--enabled/--disabled", default=None, help="Whether messages are sent.")
async def change(call: Call, *, channel: str, target_file: Any, token_file: Any, **given: Any) -> None:
    """Change a channel; what no option names stays.

    CHANNEL is its id. Every other one is told, and the owners by mail.
    """
    target = None if target_file is None else target_file.read().strip()
    body = {**only_given(target=target), **_body(token_file=token_file, **given)}
    if not body:
        raise click.UsageError("say what to change")
    made = await call.send("PATCH", await _address(call, channel), body)
    call.out.show(made, f"Changed the channel {made['id']}.")


@command("delete", group=channels, example=f"custody channels delete {_EXAMPLE} --yes")
@click.argument("channel")
@YES
async def delete(call: Call, *, channel: str, yes: bool) -> None:
    """Delete a channel; it is told a last time.

    CHANNEL is its id. Every other one is told too, and the owners by mail.
    """
    found = await _find(call, channel)
    call.confirm(f"Delete the {found['kind']} channel to {found['host']}?", assumed=yes)
    call.out.show(await call.send("DELETE", f"{_PATH}/{found['id']}"), f"Deleted the channel to {found['host']}.")


@command("test", group=channels, example=f"custody channels test {_EXAMPLE}")
@click.argument("channel")
async def test(call: Call, *, channel: str) -> None:
    """Send a message that says it is a test; wait for its outcome.

    CHANNEL is its id. The status is 1 if it did not arrive.
    """
    address = await _address(call, channel)
    sent = await call.send("POST", f"{address}/test")
    call.out.doing("Waiting for the receiver")
    until = time.monotonic() + _TEST_SECONDS
    while sent["status"] in _OPEN and time.monotonic() < until:
        await asyncio.sleep(_LOOK_SECONDS)
        page = await call.page(f"{address}/deliveries", limit=200)
        sent = next((one for one in page.items if one["id"] == sent["id"]), sent)
    call.out.show(sent, f"The test {sent['id']}: {_state(sent)}.")
    if sent["status"] != "delivered":
        raise click.exceptions.Exit(1)


@command("deliveries", group=channels, example=f"custody channels deliveries {_EXAMPLE} --status failed")
@click.argument("channel")
@click.option(
    "--status", type=click.Choice((*_OPEN, "delivered", "failed", "dropped")), help="Only those in this state."
)
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="How many at most.")
async def deliveries(call: Call, *, channel: str, **query: Any) -> None:
    """List the newest messages, without their text.

    CHANNEL is its id.
    """
    page = await call.page(f"{await _address(call, channel)}/deliveries", **query)
    columns: dict[str, Column] = {
        "MADE": "createdAt",
        "WHAT": "purpose",
        "STATE": _state,
        "ATTEMPTS": lambda one: f"{one['attempts']} of {one['maxAttempts']}",
        "ID": "id",
    }
    call.out.rows(page.items, columns, nothing="There are no such messages.")


@command("retry", group=channels, example=f"custody channels retry {_EXAMPLE}")
@click.argument("message")
async def retry(call: Call, *, message: str) -> None:
    """Send a failed message again, without what was decided.

    MESSAGE is its id.
    """
    made = await call.send("POST", path("notification-channels", "deliveries", message, "retry"))
    call.out.show(made, f"The message {made['id']}: {_state(made)}.")


def _body(*, events: str | None, quiet: str | None, token_file: Any = None, **given: Any) -> dict[str, Any]:
    token = None if token_file is None else token_file.read().strip()
    return only_given(events=split_names(events), quietHours=_hours(quiet), token=token, **given)


def _hours(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    span, at, zone = text.partition("@")
    start, dash, end = span.partition("-")
    if not (at and dash):
        raise click.UsageError("--quiet is written as 22:00-07:00@Europe/Berlin")
    return {"start": start, "end": end, "timezone": zone}


async def _find(call: Call, channel: str) -> dict[str, Any]:
    return await find(call, _PATH, channel, by="id", what="channel", word="channels")


async def _address(call: Call, channel: str) -> str:
    return f"{_PATH}/{(await _find(call, channel))['id']}"


def _state(one: dict[str, Any]) -> str:
    return f"{one['status']}: {one['error']}" if one["error"] else str(one["status"])
