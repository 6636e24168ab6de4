"""Alive, ready, keys, contract. Spec 1/4.5, decisions 1, 7."""

import httpx

from tests.fixtures.callers import Agent, Client


def test_health_says_that_the_process_answers(as_nobody: Client) -> None:
    assert as_nobody.ok("GET", "/health") == {"status": "ok"}


def test_ready_names_every_check(as_nobody: Client) -> None:
    ready = as_nobody.ok("GET", "/ready")

    assert ready["status"] == "ready"
    checks = {name: check["ok"] for name, check in ready["checks"].items() if name != "jobs"}
    assert checks == {"database": True, "schema": True, "signer": True, "importSessionStore": True}
    assert ready["checks"]["importSessionStore"]["source"] == "database"
    assert isinstance(ready["checks"]["jobs"], dict)


def test_the_public_keys_are_a_jwk_set_without_private_parts(as_nobody: Client) -> None:
    answer = as_nobody.get("/.well-known/jwks.json")

    keys = answer.json()["keys"]
    assert set(answer.json()) == {"keys"}
    # The first verifies tokens, the others what their use says; each is a key of its own.
    assert [key["use"] for key in keys] == ["sig", "receipt", "checkpoint"]
    assert len({key["kid"] for key in keys}) == len({key["x"] for key in keys}) == 3
    for key in keys:
        assert {name: key[name] for name in ("kty", "crv", "alg")} == {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA"}
        assert "d" not in key


def test_the_contract_is_served(as_nobody: Client) -> None:
    answer = as_nobody.get("/openapi.json")

    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.1.0"
    assert "/vault/{agentId}/sign" in answer.json()["paths"]


def test_a_head_request_and_a_broken_line_do_not_harm_the_next_request(as_nobody: Client, agent: Agent) -> None:
    answers = [as_nobody.head("/health"), as_nobody.options("/agents"), as_nobody.request("BREW", "/agents")]

    assert all(400 <= answer.status_code < 500 for answer in answers)
    assert as_nobody.get("/health").status_code == 200


def test_headers_too_large_are_refused_and_the_next_request_is_served(as_nobody: Client) -> None:
    try:
        status = as_nobody.get("/health", headers={"X-Large": "x" * 100_000}).status_code
    except httpx.HTTPError:
        status = 431  # the server may close the connection before all of it was sent
    assert status == 431
    assert as_nobody.get("/health").status_code == 200
