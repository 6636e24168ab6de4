"""Places of the console, reached by key and by mouse."""

from pathlib import Path

import pytest
from textual.widgets import Input

from console.widgets.heading import PLACES
from tests.fixtures.callers import Tenant
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import driving
from tests.fixtures.people import Person
from tests.fixtures.server import Service

pytestmark = pytest.mark.long


@pytest.mark.parametrize("who", ["key", "person"])
async def test_a_number_goes_on_right_after_arriving(
    service: Service, tenant: Tenant, admin: Person, folder: Path, who: str
) -> None:
    tenant.agent()
    if who == "person":
        keep_session(folder, service.url, admin)
    async with driving(service.url, folder, key=tenant.key if who == "key" else None) as console:
        await console.until(lambda: console.app.person and console.app.current_mode == "approvals", "the queue")
        for number in "2345671":
            await console.press(number)
            place = PLACES[int(number) - 1][0]
            await console.until(lambda place=place: console.app.current_mode == place, place)  # type: ignore[misc]
            assert not isinstance(console.app.focused, Input)


@pytest.mark.parametrize("number", "24")
async def test_a_number_goes_on_after_a_search_was_left(
    service: Service, tenant: Tenant, folder: Path, number: str
) -> None:
    tenant.agent()
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press(number)
        await console.sees("1 agent ·")
        await console.press("slash", "1", "escape", "1")
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        await console.press(number, "6")

        await console.until(lambda: console.app.current_mode == "secrets", "the secrets")


@pytest.mark.parametrize(("number", "place"), [(number, place) for number, (place, _) in enumerate(PLACES, 1)])
async def test_each_place_has_a_key_and_a_click(
    service: Service, tenant: Tenant, folder: Path, number: int, place: str
) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")

        await console.press(str(number))
        await console.until(lambda: console.app.current_mode == place, place)
        await console.pilot.click("#place-approvals")
        await console.until(lambda: console.app.current_mode == "approvals", "the way back")
        await console.pilot.click(f"#place-{place}")

        await console.until(lambda: console.app.current_mode == place, place)
