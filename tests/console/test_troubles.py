"""Trouble on the screen: one calm sentence over what was known, in any terminal."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from console.wire.failures import Patience
from tests.console.waiting import cautious, item, later, queue_order, random_of
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE, driving
from tests.fixtures.server import Service
from tests.outside import odd_api
from tests.outside.odd_api import Deed, answers, refuses, succeeds

pytestmark = pytest.mark.long

PATIENT = replace(Patience(), again=(5,), silence=1)
TROUBLES: dict[str, tuple[Deed | None, str, tuple[int, int]]] = {
    "away": (None, "cannot be reached", NARROW),
    "too fast": (refuses(429, "Too many requests.", Retry_After="7"), "Too many requests.", WIDE),
    "failed": (refuses(500, "It failed.", X_Request_Id="request-7"), "(request request-7)", WIDE),
    "foreign": (answers(200, b"<h1>Welcome, guest</h1>"), "not like this service", NARROW),
    "not understood": (succeeds([{"id": 7}]), "cannot be parsed", NARROW),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_is_one_sentence_over_what_was_known(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion, trouble: str
) -> None:
    deed, words, size = TROUBLES[trouble]
    one = item(tenant, queue_order(cautious(tenant), 15 * 10**17))
    clock = [later(one)]
    async with (
        odd_api.odd_api(service.url) as odd,
        driving(odd.url, folder, key=tenant.key, size=size, now=lambda: clock[0]) as console,
    ):
        await console.sees("1 waiting", "live", "never paid before")
        await console.until(lambda: not [worker for worker in console.app.workers if worker.group == "load"], "rest")
        console.app.client.patience = PATIENT
        if deed is None:
            await odd.refuse()
            await console.sees("polled every second")
        else:
            odd.does(deed, "/approvals")
        clock[0] += timedelta(seconds=42)
        console.app.queue_monitor.watch.ring()
        await console.sees(words, "42s old", "Has waited 2m 12s")

        assert await console.picture(*random_of(one)) == pictures


@pytest.mark.parametrize("way", ["tiny", "without colours"])
async def test_any_terminal_is_told_what_it_can_be_told(
    service: Service,
    tenant: Tenant,
    folder: Path,
    pictures: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    if way != "tiny":
        monkeypatch.setenv("NO_COLOR", "1")
    one = item(tenant, queue_order(cautious(tenant), 15 * 10**17))
    now = later(one)
    async with driving(service.url, folder, key=tenant.key, size=NARROW, now=lambda: now) as console:
        await console.sees("1 waiting", "live", "never paid before")
        await console.press("space")
        if way == "tiny":
            await console.pilot.resize_terminal(40, 10)
            await console.sees("too small")

        assert await console.picture(*random_of(one)) == pictures
