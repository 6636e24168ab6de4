"""Paths as clients spell them: percent-decoded once, dots and hidden slashes refused, HEAD beside every GET."""

from urllib.parse import quote

import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.server import Service
from tests.outside import loopback
from tests.routes.test_hostile import raw


@pytest.mark.parametrize("name", ["a:b", "a.b", "a-b_c", "x", "..x", "x.."])
def test_an_encoded_id_is_the_same_agent(tenant: Tenant, name: str) -> None:
    tenant.ok("POST", "/agents", {"id": name, "name": "N"})
    every_letter = "".join(f"%{ord(letter):02x}" for letter in name)

    found = {tenant.ok("GET", f"/agents/{spelled}")["id"] for spelled in (quote(name, safe=""), every_letter)}

    assert found == {name}


def test_a_path_is_decoded_once_and_not_twice(tenant: Tenant) -> None:
    tenant.ok("POST", "/agents", {"id": "x", "name": "X"})

    assert tenant.get("/agents/%2578").json()["data"]["code"] == "bad_path"


def test_an_encoded_word_of_a_route_is_that_word(service: Service) -> None:
    # The contract has no encoded spelling, so its clients are not asked.
    with loopback.client() as client:
        assert client.get(f"{service.url}/%68ealth").status_code == 200


@pytest.mark.parametrize("segment", ["%2e", "%2E%2e", "a%2fb", "a%00", "a%0a", "a%5cb", "%ff", "%c3%28"])
def test_a_segment_that_hides_something_is_refused(tenant: Tenant, segment: str) -> None:
    answer = tenant.get(f"/agents/{segment}")

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_path")


@pytest.mark.parametrize("path", ["/agents/..", "/agents/.", "/./health", "/agents/../health"])
def test_literal_dots_are_refused_too(service: Service, path: str) -> None:
    # Over a socket of its own, since every client would rewrite them.
    answer = raw(service, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 400 "), answer[:300]


@pytest.mark.parametrize("name", [".", "..", "..."])
def test_an_agent_of_dots_cannot_be_made(tenant: Tenant, name: str) -> None:
    assert tenant.post("/agents", json={"id": name, "name": "Dots"}).status_code == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/secrets/routes", "/secrets/routes/explain"])
def test_a_word_is_not_taken_for_an_id(tenant: Tenant, method: str, path: str) -> None:
    answer = tenant.request(method, path, json={})

    assert (answer.status_code, "PUT" in answer.headers["Allow"]) == (405, False)


def test_an_agent_may_still_be_called_as_a_route_is(tenant: Tenant) -> None:
    tenant.ok("POST", "/agents", {"id": "batch", "name": "B"})

    assert tenant.ok("GET", "/agents/batch")["id"] == "batch"
    assert tenant.request("DELETE", "/agents/batch").status_code == 200


@pytest.mark.parametrize("path", ["/health", "/agents", "/openapi.json", "/docs", "/events"])
def test_head_is_get_without_a_body(tenant: Tenant, path: str) -> None:
    head = tenant.head(path)

    assert (head.status_code, head.content) == (200, b"")
    if path in ("/health", "/openapi.json"):
        assert int(head.headers["Content-Length"]) == len(tenant.get(path).content)


def test_head_of_what_is_absent_is_404(tenant: Tenant) -> None:
    assert tenant.head("/agents/nobody").status_code == 404


def test_no_answer_has_an_empty_header(as_nobody: Client) -> None:
    assert all(as_nobody.get("/health").headers.values())


def test_a_request_without_a_host_is_refused(service: Service) -> None:
    answer = raw(service, b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 "), answer[:300]
