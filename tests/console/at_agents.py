"""A console that stands at the agents or their policies, and what of it differs from run to run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from console.agents.spending import first_day
from tests.fixtures.callers import Tenant
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from words.texts.moments import clock, local_now, moment

KEYS = {"agents": "2", "policies": "4"}


@asynccontextmanager
async def at(
    place: str, service: Service, folder: Path, who: Tenant | Person, **settings: Any
) -> AsyncIterator[Driven]:
    """The console of a tenant's key or of a person who is signed in, at a place."""
    key = who.key if isinstance(who, Tenant) else None
    if isinstance(who, Person):
        keep_session(folder, service.url, who)
    async with driving(service.url, folder, key=key, **settings) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press(KEYS[place])
        await console.until(lambda: console.app.current_mode == place, place)
        yield console


def random_of(tenant: Tenant, *agents: str) -> list[str]:
    """The random values that are shown of a tenant's agents: addresses, times, and the days that end today."""
    found: list[str] = []
    for agent in agents:
        shown = tenant.ok("GET", f"/agents/{agent}")
        # Without 0x, with which the fixed addresses begin as well.
        found += [shown["walletAddresses"]["evm"][2:], shown["walletAddresses"]["solana"]]
        found += [clock(moment(shown[name])) for name in ("createdAt", "frozenAt") if shown.get(name)]
    today = local_now().date()
    return [*found, f"{today:%d %b}", f"{first_day(today):%d %b}"]


def a_while_after(tenant: Tenant, agent: str) -> Any:
    """A clock that stands an hour and a half after an agent was made: all that a test does was `1h ago`."""
    made = moment(tenant.ok("GET", f"/agents/{agent}")["createdAt"])
    assert isinstance(made, datetime)
    return lambda: made + timedelta(minutes=90)
