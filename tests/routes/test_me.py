"""GET /me: any credential is told what it is."""

import base64
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.forgery import claims_of
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

NOTHING = dict.fromkeys(
    ("tenantId", "agentId", "userId", "role", "clientId", "keyId", "name", "prefix", "scopes", "expiresAt")
)


def spell(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_a_tenants_key(tenant: Tenant, as_owner: Person) -> None:
    path = f"/tenants/{tenant.id}/api-keys"
    (row,) = as_owner.ok("GET", path)
    mine = {"kind": "tenant_key", "tenantId": tenant.id, "keyId": row["id"], "prefix": row["prefix"]}

    before = tenant.ok("GET", "/me")
    as_owner.ok("POST", path, {"name": "the next one"})
    retiring = tenant.ok("GET", "/me")

    assert before == NOTHING | mine
    assert retiring == NOTHING | mine | {"expiresAt": as_owner.ok("GET", path)[1]["retiresAt"]}


def test_an_agents_token(tenant: Tenant, agent: Agent) -> None:
    ends = datetime.fromtimestamp(int(claims_of(agent.headers["Authorization"].split()[1])["exp"]), UTC)

    assert agent.ok("GET", "/me") == NOTHING | {
        "kind": "agent_token",
        "tenantId": tenant.id,
        "agentId": agent.id,
        "scopes": ["agent"],
        "expiresAt": spell(ends),
    }
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")
    assert eventually(lambda: agent.get("/me").status_code, lambda status: status == 401, seconds=2)


@pytest.mark.parametrize("role", ["owner", "member"])
def test_a_session(service: Service, tenant: Tenant, role: str) -> None:
    with closing(member(service, tenant, role)) as somebody:
        me = somebody.ok("GET", "/me")

    ends = datetime.fromisoformat(me.pop("expiresAt"))
    assert me == {
        **{name: value for name, value in NOTHING.items() if name != "expiresAt"},
        "kind": "session",
        "tenantId": tenant.id,
        "userId": somebody.id,
        "role": role,
        "scopes": ["session"],
    }
    assert timedelta(minutes=10) < ends - datetime.now(UTC) <= timedelta(minutes=15, seconds=5)


def test_an_app_client(as_owner: Person) -> None:
    with app_client_of(as_owner) as client:
        shown = base64.b64decode(client.headers["Authorization"].split()[1]).decode()
        before = client.ok("GET", "/me")
        path = f"/tenants/{as_owner.tenant}/app-clients/integration/secrets"
        as_owner.ok("POST", path, {})
        retiring = client.ok("GET", "/me")

    mine = {"kind": "app_client", "tenantId": as_owner.tenant, "clientId": "integration"}
    assert before == NOTHING | mine | {"prefix": shown.rpartition(":")[2][:12]}
    assert retiring["expiresAt"] == as_owner.ok("GET", path)[1]["retiresAt"]


def test_the_operators_key(as_platform: Client) -> None:
    me = as_platform.ok("GET", "/me")

    prefix = me["prefix"]
    assert me == NOTHING | {"kind": "platform_key", "prefix": prefix}
    assert as_platform.headers["X-Service-Platform-Key"].startswith(prefix)


def test_a_stranger_is_told_nothing(as_nobody: Client) -> None:
    assert as_nobody.get("/me").status_code == 401
    assert as_nobody.get("/me", headers={"X-Service-Key": "ck_no_such_key"}).status_code == 401
