"""The tenant's events as they come, over whatever breaks off in between."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, Final

import click
import msgspec

from console.wire.api_client import Event
from console.wire.failures import Away, Faulty, Malformed, TooFast
from tenant_command.call import Call
from tenant_command.event_names import EVENTS

# What passes by itself: a service that starts again, a gateway before it, too many streams for a moment.
_PASSES: Final = (Away, Faulty, Malformed, TooFast)
_DIGITS: Final = 18


def number_of(_context: click.Context, _option: click.Parameter, said: str | None) -> str | None:
    """Read the number of an event; raises BadParameter."""
    if said is not None and not (said.isascii() and said.isdecimal() and len(said) <= _DIGITS):
        raise click.BadParameter("it is no number of an event")
    return said


def remark(call: Call, names: Iterable[str]) -> None:
    """Warn of names of events that are none, as far as this command knows: nothing would ever come."""
    for name in names:
        if name not in EVENTS:
            call.out.warn(f"This command knows no event {name}. It knows: {', '.join(EVENTS)}.")


async def follow(call: Call, since: str | None) -> AsyncGenerator[Event]:
    """Every event from after the number `since`, or from now on. A stream that ends or breaks off is taken up again.

    The first try must succeed; it raises Failure. So does what does not pass: a session that ended, say.
    """
    await call.identify()
    place, failures, was_there = since, 0, False
    while True:
        try:
            async with aclosing(call.client.events(place)) as events:
                async for event in events:
                    if failures:
                        call.out.warn("The stream of events is there again.")
                    failures, was_there = 0, True
                    yield event
                    place = event.id or place
            wait = call.client.patience.again_in(1)
        except _PASSES as failure:
            if not was_there:
                raise
            failures += 1
            if failures == 1:
                call.out.warn(f"{failure.sentence} Connecting again until it is there.")
            again = call.client.patience.again_in(failures)
            wait = failure.retry_after if isinstance(failure, TooFast) else again
        await asyncio.sleep(wait)


async def recall(call: Call, since: str) -> AsyncGenerator[Event]:
    """Every event that there is after the number `since`."""
    await call.identify()
    place = since
    # A service that stops ends a stream in good order, as if that were all: so it is asked once more.
    for _ in range(2):
        async with aclosing(call.client.events(place, follow=False)) as events:
            async for event in events:
                yield event
                place = event.id or place


def envelope_of(event: Event) -> dict[str, Any] | None:
    """Read the envelope of an event as it was sent; None where there is none."""
    try:
        found = msgspec.json.decode(event.raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_one = isinstance(found, dict) and isinstance(found.get("event"), str) and isinstance(found.get("id"), str)
    return found if is_one else None
