"""Events of the tenant on a developer's own machine, posted there as a webhook would be."""

from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

import click

from console.wire.api_client import Event
from console.wire.connections import is_loopback
from tenant_command import following
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.options import YES, split_names
from tenant_command.receiver import Outcome, Receiver
from tenant_command.webhook_signing import draw_id, draw_secret, headers_of
from words.texts.moments import local_now

_LONGEST_URL: Final = 2_048
_WIDTHS: Final = (8, 20, 16, 8)


def _address(_context: click.Context, _option: click.Parameter, said: str) -> str:
    try:
        parts = urlsplit(said)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_good = is_good and said.isascii() and said.isprintable() and " " not in said and len(said) <= _LONGEST_URL
    except ValueError:
        is_good = False
    if not is_good:
        raise click.BadParameter("it is no address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise click.BadParameter("a webhook's address has no user, password or fragment")
    return said


@command("listen", example="custody listen --forward-to http://localhost:3000/webhooks --events tx.pending,tx.failed")
@click.option(
    "--forward-to", "address", required=True, callback=_address, metavar="URL", help="The receiver, on this machine."
)
@click.option("--events", "said", metavar="NAMES", help="Only these, with commas between.")
@click.option("--since", metavar="NUMBER", callback=following.number_of, help="Begin after the event with this number.")
@click.option("--skip-verify", is_flag=True, help="Take any certificate of a receiver on this machine.")
@YES
async def listen(
    call: Call, *, address: str, said: str | None, since: str | None, skip_verify: bool, yes: bool
) -> None:
    """Post events to a receiver on your own machine.

    Each goes to URL as a webhook would, with the same body and headers, until you stop it. They are signed with a
    secret that is drawn and printed at the start; give it to your receiver. One is posted after the other, once each,
    and has ten seconds to be answered. Each is a line: number, event, agent, answer, duration. A receiver on another
    machine gets them only if you confirm it.
    """
    if skip_verify and not is_loopback(address):
        raise click.UsageError("--skip-verify is for a receiver on this machine")
    if not is_loopback(address):
        call.confirm(f"{urlsplit(address).netloc} is not this machine. Send the tenant's events there?", assumed=yes)
    names = split_names(said)
    following.remark(call, names or ())
    receiver = Receiver(address, skip_verify=skip_verify)
    try:
        await _forward(call, receiver, since, names)
    finally:
        await receiver.close()


async def _forward(call: Call, receiver: Receiver, since: str | None, names: list[str] | None) -> None:
    secret, is_there = draw_secret(), False
    async with aclosing(following.follow(call, since)) as stream:
        async for event in stream:
            match event.name:
                case "open":
                    if not is_there:
                        told = f"Events go to {receiver.url}, signed with {secret}"
                        call.out.stream({"forwardTo": receiver.url, "secret": secret}, told)
                    is_there = True
                    call.out.doing("Waiting for the next event")
                case "place":
                    pass
                case "reset":
                    call.out.warn("Events may have been missed: the service does not keep the last one any more.")
                case name if names is None or name in names:
                    await _deliver(call, receiver, secret, event)


async def _deliver(call: Call, receiver: Receiver, secret: str, event: Event) -> None:
    if following.envelope_of(event) is None:
        call.out.warn(f"The event {event.id} is none that can be read; it is not sent on.")
        return
    delivery = draw_id()
    call.out.doing(f"Waiting for {receiver.url}")
    outcome = await receiver.post(headers_of(secret, delivery, local_now(), event.raw), event.raw)
    call.out.doing("Waiting for the next event")
    agent = str(event.data.get("agentId") or "-")
    cells = (event.id, event.name, agent, _word(outcome), f"{outcome.seconds:.2f} s")
    call.out.stream(_as_data(event, delivery, outcome), *cells, widths=_WIDTHS)


def _word(outcome: Outcome) -> str:
    if outcome.status is None:
        return outcome.problem
    return f"{outcome.status} redirect" if 300 <= outcome.status < 400 else str(outcome.status)


def _as_data(event: Event, delivery: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "number": event.id,
        "event": event.name,
        "eventId": event.data.get("id"),
        "deliveryId": delivery,
        "delivered": outcome.is_taken,
        "status": outcome.status,
        "error": outcome.problem or None,
        "milliseconds": round(outcome.seconds * 1000),
    }
