"""The global limit per client."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing

import asyncpg
import pytest

from tests.fixtures.callers import Client, Tenant, new_tenant, platform_client
from tests.fixtures.deployments import partner_of
from tests.fixtures.people import sign_in
from tests.fixtures.server import Service

MOST = 20


@pytest.fixture(scope="module")
def narrow(service: Service) -> Iterator[Service]:
    """A deployment that takes twenty requests a minute of a client, and three of a stranger."""
    limits = {"SERVICE_RATE_LIMIT_MAX": str(MOST), "SERVICE_RATE_LIMIT_ANONYMOUS_MAX": "3"}
    with partner_of(service, **limits, SERVICE_TRUSTED_PROXIES="127.0.0.0/8") as running:
        yield running


@pytest.fixture
def limited_tenant(narrow: Service) -> Iterator[Tenant]:
    with new_tenant(narrow) as tenant:
        yield tenant


def test_every_answer_says_what_is_left(limited_tenant: Tenant) -> None:
    first, second = limited_tenant.get("/agents"), limited_tenant.get("/agents/absent")

    assert [answer.headers["RateLimit-Limit"] for answer in (first, second)] == [str(MOST)] * 2
    assert [answer.headers["RateLimit-Remaining"] for answer in (first, second)] == [str(MOST - 1), str(MOST - 2)]
    assert 1 <= int(first.headers["RateLimit-Reset"]) <= 60


def test_one_request_too_many_is_429_with_the_time_to_wait(limited_tenant: Tenant) -> None:
    answers = [limited_tenant.get("/agents") for _ in range(MOST + 1)]

    last = answers[-1]
    assert [answer.status_code for answer in answers] == [200] * MOST + [429]
    assert (last.json()["ok"], last.json()["data"]) == (False, {"code": "rate_limited"})
    assert 1 <= int(last.headers["Retry-After"]) <= 60
    assert last.headers["RateLimit-Remaining"] == last.headers["X-RateLimit-Remaining"] == "0"
    assert last.headers["Retry-After"] == last.headers["RateLimit-Reset"]


def test_clients_do_not_use_up_each_others_limit(limited_tenant: Tenant, narrow: Service) -> None:
    agent = limited_tenant.agent()
    while limited_tenant.get("/agents").status_code == 200:
        pass

    assert agent.get(f"/agents/{agent.id}").status_code == 200
    with new_tenant(narrow) as another:
        assert another.get("/agents").status_code == 200


def test_strangers_are_counted_by_address_which_only_a_trusted_proxy_may_name(narrow: Service) -> None:
    with Client(base_url=narrow.url) as stranger:
        here = [stranger.get("/openapi.json", headers={"X-Forwarded-For": "203.0.113.1"}).status_code for _ in range(2)]
        statuses = [
            stranger.get("/.well-known/jwks.json", headers={"X-Forwarded-For": f"198.51.100.9, {address}"}).status_code
            for address in ["203.0.113.7"] * 4 + ["203.0.113.8"]
        ]

    assert (here, statuses) == ([200, 200], [200, 200, 200, 429, 200])


def test_an_invalid_credential_counts_against_the_address(narrow: Service) -> None:
    headers = {"X-Service-Key": "ck_guess", "X-Forwarded-For": "203.0.113.20"}
    with Client(base_url=narrow.url, headers=headers) as guesser:
        statuses = [guesser.get("/agents").status_code for _ in range(5)]

    assert statuses == [401, 401, 401, 429, 429]


def test_where_many_guesses_came_from_only_credentials_that_were_good_are_looked_up(narrow: Service) -> None:
    """Each look-up is a query, which a flood of guesses must not cost."""
    here, elsewhere = {"X-Forwarded-For": "203.0.113.21"}, {"X-Forwarded-For": "203.0.113.22"}
    with new_tenant(narrow) as known, new_tenant(narrow) as new, Client(base_url=narrow.url, headers=here) as guesser:
        assert known.get("/agents").status_code == 200
        guesses = [guesser.get("/agents", headers={"X-Service-Key": f"ck_{turn}"}).status_code for turn in range(4)]

        assert guesses == [401, 401, 401, 429]
        assert known.get("/agents", headers=here).status_code == 200
        refused = new.get("/agents", headers=here)
        assert (refused.status_code, refused.json()["data"]) == (429, {"code": "rate_limited"})
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert new.get("/agents", headers=elsewhere).status_code == 200


async def test_a_credential_over_its_limit_is_refused_without_looking_it_up(
    narrow: Service, owner: asyncpg.Connection
) -> None:
    """A session is asked for each time, so one that has ended would be 401 if anybody asked."""
    with closing(sign_in(narrow)) as person:
        answers = [person.get("/auth/session").status_code for _ in range(MOST + 1)]
        await owner.execute("UPDATE sessions SET revoked_at = service_now() WHERE user_id = $1", person.id)

        assert answers == [200] * MOST + [429]
        assert person.get("/auth/session").status_code == 429


def test_health_is_never_limited(narrow: Service) -> None:
    with Client(base_url=narrow.url) as stranger:
        answers = [stranger.get(path) for path in ("/health", "/ready") for _ in range(5)]

    assert {answer.status_code for answer in answers} == {200}
    assert not any("RateLimit-Limit" in answer.headers for answer in answers)


@pytest.mark.parametrize(
    "forwarded",
    [
        # A client writes a line of its own before the one that a proxy appends.
        [[f"203.0.113.{30 + turn}", "198.51.100.30"] for turn in range(4)],
        [[f"198.51.100.31:{4000 + turn}"] for turn in range(4)],
        [[f"2001:db8:1:2::{turn:x}"] for turn in range(4)],
        [[f"2001:db8:1:3:{turn:x}::1, [2001:db8:1:3::{turn:x}]:80"] for turn in range(4)],
        [["::ffff:198.51.100.32"], ["198.51.100.32"], ["198.51.100.32:80"], ["::ffff:c633:6420"]],
    ],
    ids=["a second line", "ports", "one network", "ports in one network", "IPv4 in IPv6"],
)
def test_a_stranger_is_one_however_the_address_is_written(narrow: Service, forwarded: list[list[str]]) -> None:
    with Client(base_url=narrow.url) as stranger:
        statuses = [
            stranger.get("/.well-known/jwks.json", headers=[("X-Forwarded-For", line) for line in lines]).status_code
            for lines in forwarded
        ]

    assert statuses == [200, 200, 200, 429]


async def test_no_client_forges_the_address_that_is_written_down(narrow: Service, owner: asyncpg.Connection) -> None:
    with new_tenant(narrow) as tenant:
        lines = [("X-Forwarded-For", "203.0.113.99"), ("X-Forwarded-For", "198.51.100.40:1234")]
        assert tenant.post("/agents", json={"id": "a", "name": "A"}, headers=lines).status_code == 201
        written = "SELECT ip_address FROM audit WHERE tenant_id = $1 AND action = 'agent.created'"
        seen = await owner.fetch(written, tenant.id)

    assert [row["ip_address"] for row in seen] == ["198.51.100.40"]


def test_agents_whose_ids_look_alike_do_not_share_a_limit(narrow: Service) -> None:
    name = f"v{uuid.uuid4().hex[:8]}"
    with platform_client(narrow) as platform, ExitStack() as stack:
        made = [
            (platform.ok("POST", "/platform/tenants", {"id": tenant, "name": "X"})["apiKey"], agent)
            for tenant, agent in ((name, "bot:1"), (f"{name}:bot", "1"))
        ]
        victim, other = (
            stack.enter_context(Tenant(base_url=narrow.url, headers={"X-Service-Key": key})).agent(agent_id=agent)
            for key, agent in made
        )
        while other.get(f"/agents/{other.id}").status_code == 200:
            pass

        assert victim.get(f"/agents/{victim.id}").status_code == 200
