"""The tenant's events, printed."""

from contextlib import aclosing
from typing import Any, Final

import click

from console.wire.api_client import Event
from console.wire.failures import Absent
from tenant_command import following
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.options import split_names

# What an event is about: the first of these that it has.
_ABOUT: Final = ("txId", "intentId", "approvalId", "accountId", "effectiveAt")
_WIDTHS: Final = (8, 24, 20, 16)
_FORGOTTEN: Final = "The event {} is not kept any more (30 days): what came after it is not known here."


@command("events", example="custody events -f --json | jq .data.txId")
@click.option("-f", "--follow", "keep_on", is_flag=True, help="Print what happens from now on, until you stop it.")
@click.option("--since", metavar="NUMBER", callback=following.number_of, help="Begin after the event with this number.")
@click.option("--events", "said", metavar="NAMES", help="Only these, with commas between.")
async def events(call: Call, *, keep_on: bool, since: str | None, said: str | None) -> None:
    """Print what happens in the tenant.

    A line for each event has its number, time, name, agent, and what it is about. With --json a line is the event as a
    webhook is sent it, and its number. With -f and --since nothing is missed, whatever breaks off in between. --since
    alone prints what there is and ends.
    """
    if since is None and not keep_on:
        raise click.UsageError("say -f for what happens from now on, or --since NUMBER for what came after that event")
    names = split_names(said)
    following.remark(call, names or ())
    is_there = False
    found = following.follow(call, since) if keep_on else following.recall(call, since or "")
    async with aclosing(found) as stream:
        async for event in stream:
            match event.name:
                case "open":
                    if keep_on and not is_there:
                        call.out.warn(f"Listening to {call.settings.url}.")
                    is_there = True
                    call.out.doing("Waiting for the next event")
                case "place":
                    pass
                case "reset":
                    _tell_of_gap(call, event, since, keep_on=keep_on)
                case name if names is None or name in names:
                    _show(call, event)


def _tell_of_gap(call: Call, event: Event, since: str | None, *, keep_on: bool) -> None:
    sentence = _FORGOTTEN.format(since) if since else "Events may have been missed: read the present state again."
    if not keep_on:
        raise Absent(sentence, status=404, code="event_forgotten", data={})
    call.out.warn(sentence)
    if call.out.as_json:
        call.out.stream({"number": event.id, "event": "reset"})


def _show(call: Call, event: Event) -> None:
    envelope = following.envelope_of(event) or {}
    data = event.data.get("data")
    about: dict[str, Any] = data if isinstance(data, dict) else {}
    what = next((str(about[name]) for name in _ABOUT if about.get(name)), "")
    reason = f" {about['reason']}" if about.get("reason") else ""
    call.out.stream(
        {"number": event.id, "event": event.name} | envelope,
        event.id,
        str(event.data.get("timestamp", "")),
        event.name,
        str(event.data.get("agentId") or "-"),
        f"{what}{reason}",
        widths=_WIDTHS,
    )
