"""Pages on other origins: which may read, exactly, and for how long."""

import time
import uuid
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from custody.protocol.frames import VERSION
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import connect

ALLOWED = "Access-Control-Allow-Origin"


def fresh_origin(port: str = ":8443") -> str:
    """An origin that no other test uses."""
    return f"https://app-{uuid.uuid4().hex[:12]}.example.com{port}"


def put(owner: Person, client_id: str, *origins: str, **changed: Any) -> None:
    """Make or change an app client that lists origins."""
    document = {"id": client_id, "name": "A page", "allowedOrigins": list(origins), **changed}
    owner.ok("PUT", f"/tenants/{owner.tenant}/app-clients", document)


def may_read(client: Client, origin: str, path: str = "/chains", **headers: str) -> bool:
    """Tell whether a page there may read an answer; an answer says it of that origin or of none."""
    answer = client.get(path, headers={"Origin": origin, **headers})
    assert answer.headers["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    return allows(answer, origin)


def allows(answer: httpx.Response, origin: str) -> bool:
    given = answer.headers.get(ALLOWED)
    assert given in (None, origin)
    return given is not None


def preflight(client: Client, origin: str, path: str, method: str = "POST") -> httpx.Response:
    """A browser's question before a page's request."""
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    return client.request("OPTIONS", path, headers=asked)


def count_asked(service: Service) -> int:
    """Count the origins that identity has looked up."""
    with connect(service, "identity") as wire:
        wire.say({"version": VERSION, "process": "api"})
        wire.hear()
        return int(wire.ask("Status")["data"]["counters"].get("LookUpOrigin", 0))


@pytest.fixture
def page(as_owner: Person) -> str:
    """An origin that an app client of this test's tenant lists."""
    origin = fresh_origin()
    put(as_owner, "page", origin)
    return origin


def test_a_listed_page_reads_answers_and_errors(tenant: Tenant, as_nobody: Client, page: str) -> None:
    answer = tenant.get("/agents", headers={"Origin": page})
    exposed = set(answer.headers["Access-Control-Expose-Headers"].split(", "))

    assert allows(answer, page)
    assert exposed >= {"X-Request-Id", "Retry-After", "RateLimit-Remaining", "X-Total-Count", "X-Next-Cursor"}
    assert exposed >= {"Idempotency-Replayed", "WWW-Authenticate", "ETag"}
    refused = {
        401: as_nobody.get("/agents", headers={"Origin": page}),
        403: tenant.get("/platform/tenants", headers={"Origin": page}),
        404: as_nobody.get("/nowhere", headers={"Origin": page}),
        405: as_nobody.put("/health", headers={"Origin": page}),
        400: tenant.post("/agents", content=b"{", headers={"Origin": page, "Content-Type": "application/json"}),
        413: tenant.post("/agents", content=b"1" * 2_000_000, headers={"Origin": page}),
    }
    assert {status: (one.status_code, allows(one, page)) for status, one in refused.items()} == {
        status: (status, True) for status in refused
    }


def test_a_page_asks_first_and_hears_what_it_may_send(as_nobody: Client, page: str) -> None:
    answer = preflight(as_nobody, page, "/agents/some-agent/policies", "PUT")

    assert (answer.status_code, answer.content, allows(answer, page)) == (204, b"", True)
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, PUT"
    headers = set(answer.headers["Access-Control-Allow-Headers"].split(", "))
    assert headers >= {"Authorization", "Content-Type", "Idempotency-Key", "X-Service-Signature", "X-Service-Key"}
    # The operator's key has no place in a tenant's page.
    assert "X-Service-Platform-Key" not in headers
    assert int(answer.headers["Access-Control-Max-Age"]) == 600
    assert answer.headers["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_the_headers_that_a_page_may_send_depend_on_the_path(as_nobody: Client, page: str) -> None:
    def headers(path: str) -> set[str]:
        return set(preflight(as_nobody, page, path).headers["Access-Control-Allow-Headers"].split(", "))

    assert headers("/auth/nonce") == {"Accept", "X-Request-Id"}
    assert headers("/auth/verify") == {"Accept", "X-Request-Id", "Content-Type"}
    assert headers("/events") >= {"Authorization", "Last-Event-ID"}
    assert "Authorization" not in headers("/platform/tenants")
    absent = preflight(as_nobody, page, "/nowhere")
    assert (absent.status_code, allows(absent, page)) == (404, True)


def test_other_origins_get_nothing(as_nobody: Client, as_owner: Person) -> None:
    listed = fresh_origin()
    put(as_owner, "page", listed)
    assert may_read(as_nobody, listed)
    host = listed.removeprefix("https://").removesuffix(":8443")

    strangers = [
        fresh_origin(),
        "null",
        "*",
        "",
        f"http://{host}:8443",
        f"https://{host}",
        f"https://{host}:8444",
        f"https://{host.upper()}:8443",
        f"HTTPS://{host}:8443",
        f"{listed}/",
        f"{listed} {listed}",
        f"https://x.{host}:8443",
        f"https://{host}.:8443",
        f"{listed}.example.org",
        f"https://a@{host}:8443",
        "https://" + "a" * 2_000,
    ]

    assert [origin for origin in strangers if may_read(as_nobody, origin)] == []
    refused = [preflight(as_nobody, origin, "/auth/verify") for origin in strangers]
    assert {(one.status_code, "Access-Control-Allow-Methods" in one.headers) for one in refused} == {(405, False)}


def test_two_origins_at_once_are_none(service: Service, as_nobody: Client, page: str) -> None:
    answer = as_nobody.get("/chains", headers=[("Origin", page), ("Origin", page)])

    assert ALLOWED not in answer.headers


def test_without_an_origin_or_on_our_own_nothing_is_asked(service: Service, as_nobody: Client) -> None:
    before = count_asked(service)
    answers = [as_nobody.get("/chains"), as_nobody.get("/chains", headers={"Origin": service.url})]

    assert [(one.headers["Vary"], ALLOWED in one.headers) for one in answers] == [("Origin", False)] * 2
    assert count_asked(service) == before
    as_nobody.get("/chains", headers={"Origin": fresh_origin()})
    assert count_asked(service) == before + 1


def test_several_clients_list_their_own_origins(as_nobody: Client, as_owner: Person) -> None:
    one, two, three = (fresh_origin() for _ in range(3))
    put(as_owner, "first", one, two)
    put(as_owner, "second", two, three)

    assert all(may_read(as_nobody, origin) for origin in (one, two, three))
    put(as_owner, "second", three)
    put(as_owner, "first", one)
    eventually(lambda: may_read(as_nobody, two), False, seconds=3)
    assert all(may_read(as_nobody, origin) for origin in (one, three))


def test_a_client_that_is_switched_off_or_deleted_lists_nothing(as_nobody: Client, as_owner: Person) -> None:
    off, gone = fresh_origin(), fresh_origin()
    put(as_owner, "off", off)
    put(as_owner, "gone", gone)
    assert may_read(as_nobody, off)
    assert may_read(as_nobody, gone)

    put(as_owner, "off", off, enabled=False)
    as_owner.ok("DELETE", f"/tenants/{as_owner.tenant}/app-clients/gone")

    eventually(lambda: may_read(as_nobody, off) or may_read(as_nobody, gone), False, seconds=3)
    assert preflight(as_nobody, off, "/auth/verify").status_code == 405


def test_another_tenants_page_reads_nothing_of_this_one(
    service: Service, tenant: Tenant, other_tenant: Tenant, as_nobody: Client, page: str
) -> None:
    agent = other_tenant.agent()
    with closing(member(service, other_tenant, "owner", mfa=True)) as stranger:
        callers = (other_tenant, agent, stranger)
        before = [may_read(caller, page, f"/agents/{agent.id}") for caller in callers]
        put(stranger, "page", page)
        eventually(lambda: may_read(other_tenant, page, "/agents"), seconds=3)
        after = [may_read(caller, page, f"/agents/{agent.id}") for caller in callers]

    assert (before, after) == ([False] * 3, [True] * 3)
    assert may_read(tenant, page, "/agents")
    assert may_read(as_nobody, page)


async def test_a_planted_origin_is_none(as_owner: Person, as_nobody: Client, owner: asyncpg.Connection) -> None:
    true, planted, switched = fresh_origin(), fresh_origin(), fresh_origin()
    put(as_owner, "page", true)
    put(as_owner, "off", switched, enabled=False)
    plant = "UPDATE app_clients SET document = replace(document, $2, $3) WHERE tenant_id = $1 AND id = 'page'"
    await owner.execute(plant, as_owner.tenant, true, planted)
    await owner.execute("UPDATE app_clients SET enabled = true WHERE tenant_id = $1 AND id = 'off'", as_owner.tenant)

    assert [may_read(as_nobody, origin) for origin in (planted, switched)] == [False, False]


def test_an_address_that_asks_about_many_origins_does_not_shut_out_a_known_one(
    service: Service, as_owner: Person, as_nobody: Client, page: str
) -> None:
    later = fresh_origin()
    put(as_owner, "later", later)
    assert may_read(as_nobody, page)
    before, began = count_asked(service), time.monotonic()
    for _ in range(200):
        as_nobody.get("/health", headers={"Origin": fresh_origin()})
    seconds = time.monotonic() - began

    assert eventually(lambda: may_read(as_nobody, page), seconds=3)
    # Twenty a second, in windows that begin with the first one.
    assert count_asked(service) - before <= 20 * (seconds + 2)
    # A second later a new one is looked up again.
    assert eventually(lambda: may_read(as_nobody, later), seconds=5)
