"""Dates at the edge of what a date can be, which a faulty service or gateway may answer."""

from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from tests.console.waiting import cautious, queue_order
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import driving
from tests.fixtures.server import Service
from tests.outside import odd_api
from tests.outside.odd_api import OddApi, changing, succeeds
from words.texts.moments import local_now

pytestmark = pytest.mark.long

LAST_DAY = "Fri, 31 Dec 9999 23:59:59 GMT"


@pytest.fixture
async def odd(service: Service) -> AsyncIterator[OddApi]:
    async with odd_api.odd_api(service.url) as api:
        yield api


@pytest.mark.parametrize(
    "date",
    [LAST_DAY, "Mon, 01 Jan 0001 00:00:00 GMT", format_datetime(local_now() + timedelta(days=2), usegmt=True)],
    ids=["last", "first", "later"],
)
async def test_a_clock_that_is_days_off_is_told_once_and_not_followed(
    service: Service, tenant: Tenant, folder: Path, odd: OddApi, date: str
) -> None:
    queue_order(cautious(tenant))
    for path in ("/approvals", "/agents", "/vault"):
        odd.does(changing(rb"\A[^\r]*", rb"\g<0>\r\ndate: " + date.encode()), path)
    async with driving(odd.url, folder, key=tenant.key) as console:
        await console.sees("1 waiting", "The service's clock is more than a day off")
        seen = len(odd.at("/approvals"))
        await console.until(lambda: len(odd.at("/approvals")) > seen, "another answer")

        assert abs(console.app.now() - local_now()) < timedelta(seconds=5)
        assert console.flat.count("more than a day off") == 1


@pytest.mark.parametrize("expires", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
async def test_an_item_that_ends_at_the_end_of_all_calendars_is_shown(
    service: Service, tenant: Tenant, folder: Path, odd: OddApi, expires: str
) -> None:
    queue_order(cautious(tenant))
    odd.does(changing(rb'"expiresAt":("[^"]*"|null)', b'"expiresAt":"%s"' % expires.encode()), "/approvals")
    async with driving(odd.url, folder, key=tenant.key) as console:
        await console.sees("1 waiting", "payer")
        await console.press("a")

        await console.sees("Approve this?")


async def test_a_code_that_never_ends_is_shown(service: Service, tenant: Tenant, folder: Path, odd: OddApi) -> None:
    address = {"verification_uri": "https://custody.example/device", "verification_uri_complete": ""}
    code = {"device_code": "x", "user_code": "BCDF-3479", "expires_in": 10**15, "interval": 10**15, **address}
    odd.does(succeeds(code), "/auth/device/code")
    async with driving(odd.url, folder, tenant=tenant.id) as console:
        await console.sees("https://custody.example/device", "This code expires in 23h")
