"""Alive, ready, keys, contract."""

import re

import asyncpg
import httpx
import pytest

from custody.version import VERSION, commit
from tests.fixtures.callers import Client, Tenant


def test_health_says_that_the_process_answers(as_nobody: Client) -> None:
    answer = as_nobody.ok("GET", "/health")
    assert answer == {"status": "ok", "version": VERSION, "commit": commit()}


def test_ready_names_every_check(as_nobody: Client) -> None:
    ready = as_nobody.ok("GET", "/ready")

    assert ready["status"] == "ready"
    checks = {name: check["ok"] for name, check in ready["checks"].items() if name != "jobs"}
    names = ("database", "schema", "commits", "history", "signer", "identity", "importSessionStore")
    assert checks == dict.fromkeys(names, True)
    assert ready["checks"]["importSessionStore"]["source"] == "database"
    assert isinstance(ready["checks"]["jobs"], dict)


def test_the_public_keys_are_a_jwk_set_without_private_parts(as_nobody: Client) -> None:
    answer = as_nobody.get("/.well-known/jwks.json")

    keys = answer.json()["keys"]
    assert set(answer.json()) == {"keys"}
    # The first verifies agents' tokens, the last people's, the others what their use says; each is a key of its own.
    assert [key["use"] for key in keys] == ["sig", "receipt", "checkpoint", "sig"]
    assert len({key["kid"] for key in keys}) == len({key["x"] for key in keys}) == 4
    for key in keys:
        assert {name: key[name] for name in ("kty", "crv", "alg")} == {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA"}
        assert "d" not in key


def test_the_contract_is_served(as_nobody: Client) -> None:
    answer = as_nobody.get("/openapi.json")

    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.1.0"
    assert "/vault/{agentId}/sign" in answer.json()["paths"]


def test_its_plain_form_and_what_endpoints_are_sent_are_served(as_nobody: Client) -> None:
    plain, events = as_nobody.get("/openapi-plain.json"), as_nobody.get("/webhooks.json")

    assert "wallet_ids" not in plain.json()["components"]["schemas"]["NewAccountBody"]["properties"]
    assert set(plain.json()["paths"]) == set(as_nobody.get("/openapi.json").json()["paths"])
    assert "tx.signed" in events.json()["webhooks"]
    assert len({answer.headers["ETag"] for answer in (plain, events, as_nobody.get("/openapi.json"))}) == 3


def test_a_client_that_has_the_contract_is_told_that_it_is_the_same(as_nobody: Client) -> None:
    tag = as_nobody.get("/openapi.json").headers["ETag"]

    same = as_nobody.get("/openapi.json", headers={"If-None-Match": f'"older", {tag}'})
    other = as_nobody.get("/openapi.json", headers={"If-None-Match": '"older"'})

    assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
    assert other.status_code == 200


def test_a_method_that_no_route_has_does_not_harm_the_next_request(as_nobody: Client) -> None:
    answers = [as_nobody.head("/vault/x/sign"), as_nobody.options("/agents"), as_nobody.request("BREW", "/agents")]

    assert all(400 <= answer.status_code < 500 for answer in answers)
    assert as_nobody.get("/health").status_code == 200


def test_headers_too_large_are_refused_and_the_next_request_is_served(as_nobody: Client) -> None:
    try:
        status = as_nobody.get("/health", headers={"X-Large": "x" * 100_000}).status_code
    except httpx.HTTPError:
        status = 431  # the server may close the connection before all of it was sent
    assert status == 431
    assert as_nobody.get("/health").status_code == 200


async def test_a_full_disk_shows_in_readiness_until_there_is_room(
    tenant: Tenant, as_nobody: Client, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent()
    refuse = "RAISE EXCEPTION 'no room' USING ERRCODE = '53100'"
    await owner.execute(f"CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {refuse}; END$$")
    for table in ("transactions", "room_trial"):
        await owner.execute(f"CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION no_room()")
    try:
        refused, full = agent.sign(), as_nobody.get("/ready")
    finally:
        await owner.execute("DROP FUNCTION no_room CASCADE")

    assert refused.json()["data"]["code"] == "database_full"
    assert (full.status_code, full.json()["data"]["checks"]["database"]) == (503, {"ok": False, "full": True})
    # Nobody has to sign first: a load balancer that waits for readiness would wait for ever.
    assert as_nobody.ok("GET", "/ready")["checks"]["database"] == {"ok": True}
    assert agent.sign().status_code == 200


@pytest.mark.parametrize(
    ("sqlstate", "code"), [("53100", "database_full"), ("53300", "database_unavailable")], ids=["no room", "crowded"]
)
async def test_a_full_database_is_503_for_every_process_that_meets_it(
    tenant: Tenant, owner: asyncpg.Connection, sqlstate: str, code: str
) -> None:
    agent = tenant.agent()
    refuse = f"RAISE EXCEPTION 'no room' USING ERRCODE = '{sqlstate}'"
    await owner.execute(f"CREATE FUNCTION no_room() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN {refuse}; END$$")
    await owner.execute(
        "CREATE POLICY no_room ON agents AS RESTRICTIVE FOR SELECT TO custody_api, custody_signer "
        f"USING (CASE WHEN tenant_id = '{tenant.id}' THEN no_room() ELSE true END)"
    )
    try:
        by_api, by_signer = tenant.get("/agents"), agent.sign()
    finally:
        await owner.execute("DROP POLICY no_room ON agents")
        await owner.execute("DROP FUNCTION no_room")

    for answer in (by_api, by_signer):
        assert (answer.status_code, answer.json()["data"]["code"]) == (503, code)
        assert int(answer.headers["Retry-After"]) > 0
    assert (tenant.get("/agents").status_code, agent.sign().status_code) == (200, 200)


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_finds_its_way_from_the_root(as_nobody: Client) -> None:
    page = as_nobody.get("/", headers=BROWSER)

    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"
    links = re.findall(r'(?:href|src)="([^"]+)"', page.text)
    # Passkeys work at the public address alone, whatever name the browser came by.
    [device] = (link for link in links if link.endswith("/device"))
    assert device.startswith("http://localhost:")
    assert {"docs", "openapi.json", "ready"} < set(links)
    # Nothing of it needs a script, and each leads somewhere.
    assert "<script" not in page.text
    assert {as_nobody.get(f"/{link}").status_code for link in links if link != device} == {200}
    assert "custody console" in page.text
    assert as_nobody.head("/", headers=BROWSER).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [("GET", "/", {}), ("GET", "/", {"Accept": "application/json"}), ("POST", "/", BROWSER), ("GET", "/x", BROWSER)],
)
def test_a_program_gets_what_it_gets_at_any_path_without_a_route(
    as_nobody: Client, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = as_nobody.request(method, path, headers=headers)

    assert (answer.status_code, answer.json()["data"]["code"]) == (404, "no_such_route")
