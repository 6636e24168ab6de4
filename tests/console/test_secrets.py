"""Secrets and credential routes: metadata and nothing else, and what the proxy would do with a request."""

import gc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.entering import confirm
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, Driven, driving
from tests.fixtures.server import Service
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT
from words.texts.moments import local_now, moment

pytestmark = pytest.mark.long

VALUE = "sk-live-of-nobody-1234567890"
ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
TOLD_APART = "described-for-all-to-see"


@pytest.fixture(name="kept")
def kept_secrets(tenant: Tenant) -> dict[str, Any]:
    """Two secrets and four routes; the agent `buyer` may use them."""
    tenant.ok("POST", "/agents", {"id": "buyer", "name": "Buyer"})
    # Half an hour beside the full one, so that neither a slow machine nor a clock that is set changes the picture.
    end = (local_now() + timedelta(days=33, hours=11, minutes=30)).isoformat(timespec="milliseconds")
    old = tenant.ok("POST", "/secrets", {"name": "[red]old[/red]", "value": VALUE, "expiresAt": end})
    new = tenant.ok("POST", "/secrets", {"name": "new-key", "value": VALUE, "description": TOLD_APART})
    tenant.ok("POST", f"/secrets/{new['id']}/rotate", {"value": f"{VALUE}-2"})
    for host, path, method, priority in (
        ("api.example.com", "/v1/*", "*", 5),
        ("api.example.com", "/*", "GET", 0),
        ("*.example.org", "/*", "*", 0),
    ):
        tenant.ok(
            "POST",
            "/secrets/routes",
            {
                "secretId": new["id"],
                "hostPattern": host,
                "pathPattern": path,
                "method": method,
                "injectAs": "header",
                "injectKey": "Authorization",
                "injectFormat": "Bearer {value}",
                "priority": priority,
            },
        )
    off = {"secretId": old["id"], "hostPattern": "*.example.net", "injectAs": "query", "injectKey": "key"}
    tenant.ok("POST", "/secrets/routes", {**off, "enabled": False})
    return old  # type: ignore[no-any-return]


async def show_secrets(console: Driven) -> None:
    """Go to the secrets."""
    await console.until(lambda: console.app.person, "the sign-in")
    await console.press("6")
    await console.sees("new-key", "api.example.com/")


async def test_lists_say_what_is_known_and_where_each_secret_goes(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any], pictures: SnapshotAssertion
) -> None:
    made = moment(kept["createdAt"])
    assert made is not None
    async with driving(service.url, folder, key=tenant.key, now=lambda: made + timedelta(days=3)) as console:
        await show_secrets(console)

        await console.sees(TOLD_APART, "30d 11h", "api.example.com/v1/*", "header Authorization: Bearer {value}")
        # No name is markup, and the routes stand in the order in which the proxy tries them.
        await console.sees("[red]old[/red]")
        lines = [line for line in console.text.splitlines() if ".example." in line or " api." in line]
        assert [line.split("example.")[1][:6].strip() for line in lines] == ["com/v1", "com/*", "org/*", "net/*"]
        assert await console.picture() == pictures


async def test_payment_routes_stand_below_where_there_are_any(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any], pictures: SnapshotAssertion
) -> None:
    paid = {"hostPattern": "data.example.com", "maxPerCall": {ASSET: "50000"}, "payTo": [SELLER]}
    tenant.ok("POST", "/payment-routes", paid)
    tenant.ok("POST", "/payment-routes", {**paid, "priority": 3, "pathPattern": "/v2/*", "allowUnknownPayTo": True})
    made = moment(kept["createdAt"])
    assert made is not None
    async with driving(service.url, folder, key=tenant.key, now=lambda: made + timedelta(days=3)) as console:
        await show_secrets(console)

        await console.sees(f"50,000 of evm:{CHAIN}:0x", "anybody", SELLER[:7])
        lines = [line for line in console.text.splitlines() if "data.example.com" in line]
        assert ["/v2/" in line for line in lines] == [True, False]
        assert await console.picture() == pictures
        await console.press("tab", "tab", "down", "enter")
        await console.sees("Payment route", f"50,000 of evm:{CHAIN}:0x", "Others", "whom a rule of the agent names")


async def test_they_fit_into_a_narrow_terminal(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any], pictures: SnapshotAssertion
) -> None:
    made = moment(kept["createdAt"])
    assert made is not None
    day_after = made + timedelta(days=3)
    async with driving(
        service.url, folder, key=tenant.key, size=NARROW, theme="light", now=lambda: day_after
    ) as console:
        await show_secrets(console)

        assert await console.picture() == pictures


async def test_no_value_is_ever_on_the_screen_or_in_what_the_console_keeps(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any]
) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await show_secrets(console)
        seen = [console.text]
        for keys in (("enter",), ("escape", "down", "enter"), ("escape", "tab", "enter"), ("escape",)):
            await console.press(*keys)
            await console.pilot.pause()
            seen.append(console.text)

        # What anybody may know is found in both places, so a value would be.
        assert TOLD_APART in "\n".join(seen)
        assert TOLD_APART in "\n".join(_reachable_texts(console))
        assert "never displayed" in "\n".join(seen)
        assert VALUE not in "\n".join(seen)
        assert not [text for text in _reachable_texts(console) if VALUE in text]


def _reachable_texts(console: Driven) -> Iterator[str]:
    """Every text that the console can reach from itself, and what the API answered it among them."""
    seen, left = set[int](), [console.app]
    while left:
        thing: Any = left.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen.add(id(thing))
        if isinstance(thing, str):
            yield thing
        left += gc.get_referents(thing)


async def test_a_request_is_explained_route_by_route(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any], pictures: SnapshotAssertion
) -> None:
    made = moment(kept["createdAt"])
    assert made is not None
    day_after = made + timedelta(days=3)
    async with driving(service.url, folder, key=tenant.key, read_only=True, now=lambda: day_after) as console:
        await show_secrets(console)
        await console.press("x")
        await console.sees("Nothing is sent")
        await console.write("buyer")
        await console.press("tab", "tab")
        await console.write("https://api.example.com/v1/models")
        await confirm(console, "would be forwarded")

        await console.sees(
            "would be forwarded with the secret of this route",
            "1. api.example.com/v1/*: it matches",
            "2. GET api.example.com/*: matches too, but another route wins",
            "3. *.example.org/*: it is for another host",
            "4. *.example.net/*: it is disabled",
        )
        assert await console.picture() == pictures


async def test_a_request_that_cannot_be_asked_about_stays_typed_and_its_field_is_named(
    service: Service, tenant: Tenant, folder: Path, kept: dict[str, Any]
) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await show_secrets(console)
        await console.press("x")
        await console.sees("Nothing is sent")
        await console.write("buyer")
        await console.press("tab", "tab")
        await console.write("ftp://api.example.com")
        await confirm(console, "The URL must start with https://")

        assert console.app.focused is not None
        assert console.app.focused.id == "url"
        await console.sees("buyer", "ftp://api.example.com")

        await console.press("escape")
        await console.sees_no("The URL must start")
        await console.press("x")
        await console.sees("Which route")
