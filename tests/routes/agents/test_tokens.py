"""An agent's tokens: how long they live, what kills them, and what only looks like one."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import asyncpg
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.server import Service


def token_of(agent: Agent) -> str:
    return agent.headers["Authorization"].removeprefix("Bearer ")


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return jwt.get_unverified_header(token), jwt.decode(token, options={"verify_signature": False})


def use_token(client: Client, agent: Agent, token: str) -> list[httpx.Response]:
    """Use a token for reading and for acting."""
    headers = {"Authorization": f"Bearer {token}"}
    order = {"to": "0x" + "11" * 20, "value": "1", "broadcast": False}
    return [
        client.get(f"/agents/{agent.id}", headers=headers),
        client.post(f"/vault/{agent.id}/sign", json=order, headers=headers),
    ]


def token_part(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def test_a_token_lives_a_day_unless_told_otherwise(tenant: Tenant, agent: Agent) -> None:
    made = tenant.ok("POST", f"/agents/{agent.id}/token", {})

    claims = parts(made["token"])[1]
    assert set(made) == {"token", "agentId", "tenantId", "scope", "expiresIn"}
    assert (made["agentId"], made["tenantId"], made["scope"], made["expiresIn"]) == (
        agent.id,
        tenant.id,
        "agent",
        "24h",
    )
    assert claims["exp"] - claims["iat"] == 86_400
    assert (claims["sub"], claims["tid"], claims["scope"]) == (agent.id, tenant.id, "agent")


def test_an_empty_body_is_enough(tenant: Tenant, agent: Agent) -> None:
    assert tenant.post(f"/agents/{agent.id}/token").status_code == 200


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("90m", 5400), ("7d", 604_800), ("30d", 2_592_000), ("720h", 2_592_000)]
)
def test_a_token_lives_as_long_as_asked(tenant: Tenant, agent: Agent, text: str, seconds: int) -> None:
    claims = parts(tenant.ok("POST", f"/agents/{agent.id}/token", {"expiresIn": text})["token"])[1]

    assert claims["exp"] - claims["iat"] == seconds


@pytest.mark.parametrize(
    "bad",
    [
        "31d",
        "721h",
        "2592001s",
        "0s",
        "-1h",
        "1",
        "h",
        "1.5h",
        "1w",
        "1h\n",
        " 1h",
        "1h 1m",
        "",
        None,
        5,
        "99999999999d",
        "1H",
        "\u0663h",
    ],
)
def test_a_life_too_long_or_malformed_is_400(tenant: Tenant, agent: Agent, bad: Any) -> None:
    answer = tenant.post(f"/agents/{agent.id}/token", json={"expiresIn": bad})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["expiresIn"])


def test_an_expired_token_is_401(tenant: Tenant, agent: Agent, as_nobody: Client) -> None:
    token = tenant.ok("POST", f"/agents/{agent.id}/token", {"expiresIn": "1s"})["token"]
    while time.time() < parts(token)[1]["exp"]:
        as_nobody.get("/health")

    assert [answer.status_code for answer in use_token(as_nobody, agent, token)] == [401, 401]


def test_revoking_kills_every_token_and_the_next_one_works(tenant: Tenant, agent: Agent, as_nobody: Client) -> None:
    others = [tenant.ok("POST", f"/agents/{agent.id}/token", {})["token"] for _ in range(2)]

    assert tenant.ok("DELETE", f"/agents/{agent.id}/tokens") == {"agentId": agent.id, "revoked": True}

    for token in [token_of(agent), *others]:
        read, act = use_token(as_nobody, agent, token)
        assert (read.status_code, act.status_code) == (401, 401)
        assert act.json()["data"]["code"] == "token_revoked"
    fresh = tenant.ok("POST", f"/agents/{agent.id}/token", {})["token"]
    assert [answer.status_code for answer in use_token(as_nobody, agent, fresh)] == [200, 200]


def test_revocation_stops_signing_at_once_even_for_a_token_just_used(tenant: Tenant, agent: Agent) -> None:
    assert agent.sign().status_code == 200
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")

    assert agent.sign().status_code == 401


def test_a_token_of_an_earlier_agent_of_the_same_name_is_dead(tenant: Tenant, agent: Agent, as_nobody: Client) -> None:
    old = token_of(agent)
    tenant.ok("DELETE", f"/agents/{agent.id}")
    tenant.ok("POST", "/agents", {"id": agent.id, "name": "again"})

    assert [answer.status_code for answer in use_token(as_nobody, agent, old)] == [401, 401]


def test_a_token_of_a_deleted_agent_is_dead(tenant: Tenant, agent: Agent, as_nobody: Client) -> None:
    tenant.ok("DELETE", f"/agents/{agent.id}")

    assert [answer.status_code for answer in use_token(as_nobody, agent, token_of(agent))] == [401, 401]


def test_a_token_does_not_work_for_another_tenants_agent_of_the_same_name(
    tenant: Tenant, other_tenant: Tenant, as_nobody: Client
) -> None:
    mine, theirs = tenant.agent(agent_id="same-name"), other_tenant.agent(agent_id="same-name")

    found = as_nobody.ok("GET", "/agents/same-name", Authorization=f"Bearer {token_of(mine)}")

    assert found["tenantId"] == tenant.id
    assert found["walletAddresses"]["evm"] != theirs.evm_address


def test_a_forged_token_is_401(as_nobody: Client, agent: Agent) -> None:
    header, claims = parts(token_of(agent))
    own = Ed25519PrivateKey.generate()
    public = as_nobody.get("/.well-known/jwks.json").json()["keys"][0]
    public_bytes = base64.urlsafe_b64decode(public["x"] + "==")
    body = f"{token_part({**header, 'alg': 'HS256'})}.{token_part(claims)}"
    by_public_key = (
        base64.urlsafe_b64encode(hmac.digest(public_bytes, body.encode(), hashlib.sha256)).rstrip(b"=").decode()
    )
    first, second, third = token_of(agent).split(".")
    forged = {
        "no algorithm": f"{token_part({**header, 'alg': 'none'})}.{token_part(claims)}.",
        "no algorithm, capital": f"{token_part({**header, 'alg': 'None'})}.{token_part(claims)}.",
        "another key": jwt.encode(claims, own, "EdDSA", headers={"kid": header["kid"]}),
        "another key by its own name": jwt.encode(claims, own, "EdDSA", headers={"kid": "mine"}),
        "key in the header": jwt.encode(
            claims, own, "EdDSA", headers={"kid": "mine", "jwk": {"kty": "OKP"}, "jku": "http://x"}
        ),
        "HMAC with the public key": f"{body}.{by_public_key}",
        "changed claims": f"{first}.{token_part({**claims, 'sub': 'other'})}.{third}",
        "cut": token_of(agent)[:-4],
        "two parts": f"{first}.{second}",
        "long": "x" * 5_000,
        "spaces": "a b c",
    }

    for what, token in forged.items():
        assert [answer.status_code for answer in use_token(as_nobody, agent, token)] == [401, 401], what


def test_an_agent_mints_and_revokes_nothing_for_itself(agent: Agent) -> None:
    answers = [
        agent.post(f"/agents/{agent.id}/token", json={}),
        agent.delete(f"/agents/{agent.id}/tokens"),
        agent.delete(f"/agents/{agent.id}"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]


async def test_no_token_is_kept_or_logged(service: Service, tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent()
    agent.sign()
    token = token_of(agent)

    for table in ("audit", "outbox", "events", "idempotency", "agents", "transactions"):
        for row in await owner.fetch(f"SELECT * FROM {table} WHERE tenant_id = $1", tenant.id):
            assert not any(token[-40:] in str(value) for value in row.values()), table
    assert token[-40:] not in service.logs()
    assert tenant.key not in service.logs()
