"""Refresh tokens that change with each use: no use twice, by however many proxies, and none lost that was given.

The provider ends all tokens of a family when an old refresh token comes, so that a second use would be seen at once.
"""

import json
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

import asyncpg
import httpx
import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied
from tests.proxy.envelope import refusal
from tests.proxy.test_minted import requests_to, url_of

PATH = "/rotating"


@pytest.fixture
def family() -> str:
    return uuid.uuid4().hex


def make_route(keyless: Keyless, family: str, query: str = "", number: int = 0) -> dict[str, Any]:
    """Make a route whose refresh token is one of a family's."""
    exchange = {"grant": "refreshToken", "tokenUrl": url_of(keyless, f"{PATH}{query}")}
    value = json.dumps({"clientId": "public", "refreshToken": f"{family}-{number}"})
    secret = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": value})
    return keyless.route(secretId=secret["id"], exchange=exchange)


def list_shown(keyless: Keyless) -> list[str]:
    """Return the refresh tokens that the provider saw, in their order."""
    said = (parse_qs(one.body) for one in requests_to(keyless, PATH))
    return [form["refresh_token"][0] for form in said if form]


@pytest.fixture
async def owner(proxy_world: Proxied) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the owner of the proxied deployment's database."""
    async with owner_of(proxy_world.database) as connection:
        yield connection


async def actions_on(owner: asyncpg.Connection, secret: str) -> list[str]:
    rows = await owner.fetch("SELECT action FROM audit WHERE resource_id = $1 ORDER BY seq", secret)
    return [row["action"] for row in rows]


def test_each_use_takes_the_refresh_token_that_the_last_one_gave(keyless: Keyless, family: str) -> None:
    route = make_route(keyless, family)
    assert keyless.gateway().get("/echo").status_code == 200
    for number in (2, 3, 4):
        # A changed route takes another access token.
        changed = {"exchange": route["exchange"] | {"scope": f"scope-{number}"}}
        keyless.tenant.ok("PUT", f"/secrets/routes/{route['id']}", changed)

        def has_asked_again(number: int = number) -> bool:
            assert keyless.gateway().get("/echo").status_code == 200
            return len(list_shown(keyless)) == number

        eventually(has_asked_again)

    assert list_shown(keyless) == [f"{family}-{number}" for number in range(4)]


def test_an_old_refresh_token_ends_the_family_and_the_error_names_the_cure(keyless: Keyless, family: str) -> None:
    """The control: a provider that is asked twice with one refresh token is not had back."""
    route = make_route(keyless, family)
    assert keyless.gateway().get("/echo").status_code == 200
    # Somebody else uses the first one again.
    again = {"grant_type": "refresh_token", "refresh_token": f"{family}-0"}
    with httpx.Client(verify=False, trust_env=False, timeout=60) as http:
        assert http.post(url_of(keyless, PATH), data=again).status_code == 400
    keyless.tenant.ok("PUT", f"/secrets/routes/{route['id']}", {"exchange": route["exchange"] | {"scope": "a"}})

    def is_refused() -> bool:
        return refusal(keyless.gateway().get("/echo")) == (502, "refresh_token_ended")

    eventually(is_refused)
    fresh = json.dumps({"clientId": "public", "refreshToken": f"{uuid.uuid4().hex}-0"})
    keyless.tenant.ok("PUT", f"/secrets/{route['secretId']}", {"value": fresh})
    eventually(lambda: keyless.gateway().get("/echo").status_code == 200)


def test_two_proxies_never_show_one_refresh_token_twice(keyless: Keyless, family: str) -> None:
    gate = f"rotating-{uuid.uuid4().hex}"
    make_route(keyless, family, f"?gate={gate}")
    with keyless.proxied.another_proxy() as other, ThreadPoolExecutor(8) as pool:
        clients = [keyless.gateway(proxy=proxy) for proxy in (None, other) for _ in range(4)]
        answers = [pool.submit(lambda one=one: one.get("/echo").status_code) for one in clients]
        eventually(lambda: list_shown(keyless))
        # The other proxy would have shown the same one by now, had it been handed out twice.
        keyless.upstream.release(gate)
        eventually(lambda: len(list_shown(keyless)) == 2)
        keyless.upstream.release(gate)
        assert [one.result() for one in answers] == [200] * 8

    assert list_shown(keyless) == [f"{family}-0", f"{family}-1"]


def test_a_rotated_secret_is_not_written_over_by_an_answer_that_comes_late(keyless: Keyless, family: str) -> None:
    gate, fresh = f"rotating-{uuid.uuid4().hex}", uuid.uuid4().hex
    route = make_route(keyless, family, f"?gate={gate}")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: keyless.gateway().get("/echo").status_code)
        eventually(lambda: list_shown(keyless))
        value = json.dumps({"clientId": "public", "refreshToken": f"{fresh}-0"})
        keyless.tenant.ok("PUT", f"/secrets/{route['secretId']}", {"value": value})
        keyless.upstream.release(gate)
        assert first.result() == 200

        second = pool.submit(lambda: keyless.gateway().get("/echo").status_code)
        eventually(lambda: len(list_shown(keyless)) == 2)
        keyless.upstream.release(gate)
        assert second.result() == 200

    assert list_shown(keyless) == [f"{family}-0", f"{fresh}-0"]


async def test_a_proxy_that_is_killed_in_between_leaves_a_word_of_it(
    keyless: Keyless, family: str, owner: asyncpg.Connection
) -> None:
    gate = f"rotating-{uuid.uuid4().hex}"
    route = make_route(keyless, family, f"?gate={gate}")
    # A proxy that was killed ends otherwise than the fixture wants.
    with suppress(AssertionError), keyless.proxied.another_proxy() as other, ThreadPoolExecutor(1) as pool:
        lost = pool.submit(lambda: keyless.gateway(proxy=other).get("/echo"))
        eventually(lambda: list_shown(keyless))
        other.process.kill()
        with suppress(httpx.HTTPError):
            lost.result()
    keyless.upstream.release(gate)
    assert list_shown(keyless) == [f"{family}-0"]
    # Nobody else asks for as long as the lease lasts; then the provider says what became of it.
    left = await owner.execute("UPDATE secrets SET refresh_until = now() WHERE id = $1", uuid.UUID(route["secretId"]))
    assert left == "UPDATE 1"

    assert refusal(keyless.gateway().get("/echo")) == (502, "refresh_token_ended")

    assert (await actions_on(owner, route["secretId"])).count("secret.refresh_unknown") == 1


def test_a_refresh_token_is_kept_though_what_came_beside_it_is_none(keyless: Keyless, family: str) -> None:
    route = make_route(keyless, family, "?garble=0")
    assert refusal(keyless.gateway().get("/echo")) == (502, "token_not_minted")

    keyless.tenant.ok("PUT", f"/secrets/routes/{route['id']}", {"exchange": route["exchange"] | {"scope": "a"}})
    eventually(lambda: keyless.gateway().get("/echo").status_code == 200)

    assert list_shown(keyless) == [f"{family}-0", f"{family}-1"]


async def test_an_answer_that_never_comes_is_called_unknown(
    keyless: Keyless, family: str, owner: asyncpg.Connection
) -> None:
    route = make_route(keyless, family, "?lose=0")

    assert refusal(keyless.gateway().get("/echo")) == (502, "token_not_minted")

    assert "secret.refresh_unknown" in await actions_on(owner, route["secretId"])


async def test_a_refresh_token_that_was_given_is_kept_sealed(
    keyless: Keyless, family: str, owner: asyncpg.Connection
) -> None:
    route = make_route(keyless, family)
    assert keyless.gateway().get("/echo").status_code == 200

    blob = await owner.fetchval(
        "SELECT blob FROM sealed WHERE owner = $1 AND purpose = 'refresh-token'", route["secretId"]
    )
    assert blob is not None
    assert family.encode() not in blob
    assert (await actions_on(owner, route["secretId"])).count("secret.refreshed") == 1
    keyless.tenant.ok("DELETE", f"/secrets/{route['secretId']}")
    assert await owner.fetchval("SELECT count(*) FROM sealed WHERE owner = $1", route["secretId"]) == 0
