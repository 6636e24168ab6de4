"""Where one can go, by key and by mouse. Spec 1/4.7, decisions 11."""

from pathlib import Path

import pytest

from console.widgets.heading import PLACES
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import driven
from tests.fixtures.server import Service


@pytest.mark.parametrize(("number", "place"), [(number, place) for number, (place, _) in enumerate(PLACES, 1)])
async def test_each_place_has_a_key_and_a_click(
    service: Service, tenant: Tenant, folder: Path, number: int, place: str
) -> None:
    async with driven(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")

        await console.press(str(number))
        await console.until(lambda: console.app.current_mode == place, place)
        await console.pilot.click("#place-approvals")
        await console.until(lambda: console.app.current_mode == "approvals", "the way back")
        await console.pilot.click(f"#place-{place}")

        await console.until(lambda: console.app.current_mode == place, place)
