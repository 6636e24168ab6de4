"""Consoles that have read a queue, and what one sees of a question."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from console.widgets.shown_item import ShownItem
from tests.console.waiting import item
from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, odd_api

MANY = [(ADDRESS, amount) for amount in range(5, 17)]
# Somebody who was never paid before is a danger, so the last step has a key of its own.
READ_ON, APPROVE, ORDINARY = "Read on (Enter)", "Approve (y)", "Approve (Enter)"


@asynccontextmanager
async def queue(service: Service, tenant: Tenant, folder: Path, **options: Any) -> AsyncIterator[Driven]:
    """A console that has read the queue."""
    async with driving(service.url, folder, key=tenant.key, **options) as console:
        await console.sees("waiting", "live", "What it does")
        yield console


@asynccontextmanager
async def odd_queue(
    service: Service, tenant: Tenant, folder: Path, **options: Any
) -> AsyncIterator[tuple[Driven, OddApi]]:
    """The same through an API that can be made to misbehave."""
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key, **options) as console:
        await console.sees("waiting", "live", "What it does")
        yield console, api


def state(tenant: Tenant, approval: str) -> str:
    found: str = item(tenant, approval)["status"]
    return found


def question(console: Driven) -> str:
    """Return the text inside the question, between its frames."""
    return console.flat[console.flat.index("Approve th") :] if "Approve th" in console.flat else ""


async def read_through(console: Driven) -> list[str]:
    """Press Enter until nothing is left to read; each page on the way."""
    pages = [question(console)]
    while await reads_on(console):
        await console.press("enter")
        pages.append(question(console))
    return pages


async def reads_on(console: Driven) -> bool:
    """Wait until the question's key counts again; whether it reads on, or else approves."""
    # Of several the button names the number.
    await console.until(
        lambda: re.search(r"Read on \(Enter\)|Approve [0-9]*\s?\((Enter|y)\)", console.flat), "the button"
    )
    return READ_ON in console.flat


async def ask(console: Driven, *keys: str) -> None:
    """Press keys and wait for a question that can be answered, with all that is known around what it is about."""
    await console.press(*keys[:-1])
    await console.until(lambda: console.one(ShownItem).known, "what is known around it")
    await console.press(keys[-1])
    await console.sees("Cancel (Esc)")
