"""Basic credentials of app clients: where they count, and when they stop."""

import base64
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.callers import Client, Tenant, new_tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

ABSENT = "00000000-0000-0000-0000-000000000000"
# Every route that a tenant may call, but for what a person or the tenant itself decides. Said here once more:
# a route that is declared wrongly must fail here.
TAKEN = {
    "POST /agents",
    "GET /agents",
    "GET /agents/{agentId}",
    "DELETE /agents/{agentId}",
    "POST /agents/{agentId}/token",
    "POST /agents/batch",
    "GET /agents/{agentId}/balance",
    "GET /agents/{agentId}/account",
    "GET /agents/{agentId}/tokens",
    "DELETE /agents/{agentId}/tokens",
    "GET /agents/{agentId}/apis",
    "GET /agents/{agentId}/policies",
    "GET /agents/{agentId}/policies/votes",
    "PUT /agents/{agentId}/policies",
    "PUT /agents/{agentId}/policies/template",
    "GET /policy-templates",
    "POST /policy-templates/preview",
    "GET /dashboard/{agentId}",
    "GET /vault/{agentId}/pending",
    "GET /vault/{agentId}/history",
    "GET /vault/{agentId}/transactions",
    "GET /vault/{agentId}/transactions/{txId}",
    "GET /vault/{agentId}/transactions/{txId}/receipt",
    "GET /vault/{agentId}/bitcoin/address",
    "POST /vault/{agentId}/simulate",
    "POST /agents/{agentId}/policies/backtest",
    "POST /intents",
    "GET /intents",
    "GET /intents/{intentId}",
    *(
        f"{method} {at}{path}"
        for at in ("/accounts", "/v1/accounts")
        for path, methods in {
            "": ("GET", "POST"),
            "/{accountId}": ("GET", "PATCH", "DELETE"),
            "/{accountId}/balance": ("GET",),
            "/{accountId}/aggregations": ("GET", "POST"),
            "/{accountId}/aggregations/{aggregationId}": ("GET", "PATCH", "DELETE"),
        }.items()
        for method in methods
    ),
    "GET /approvals",
    "GET /approvals/stats",
    "GET /approvals/words",
    "GET /approvals/{id}",
    "GET /approvals/{id}/words",
    "GET /transactions",
    "GET /me",
    "PATCH /agents/{agentId}",
    "GET /secrets/routes/{id}",
    "POST /policy-sets",
    "GET /policy-sets",
    "GET /policy-sets/{id}",
    "PUT /policy-sets/{id}",
    "DELETE /policy-sets/{id}",
    "PUT /policy-sets/{id}/template",
    "POST /payment-routes",
    "GET /payment-routes",
    "GET /payment-routes/{id}",
    "PUT /payment-routes/{id}",
    "DELETE /payment-routes/{id}",
    "GET /tenants/{id}",
    "GET /tenants/{id}/config",
    "GET /tenants/{id}/tokens",
    "POST /secrets",
    "GET /secrets",
    "GET /secrets/{id}",
    "PUT /secrets/{id}",
    "DELETE /secrets/{id}",
    "POST /secrets/{id}/rotate",
    "POST /secrets/routes",
    "GET /secrets/routes",
    "PUT /secrets/routes/{id}",
    "DELETE /secrets/routes/{id}",
    "POST /secrets/routes/preset",
    "POST /secrets/routes/explain",
    "GET /events",
    # Retired: 410 for every caller.
    "PUT /tenants/{id}/webhook",
    "PUT /platform/tenants/{id}/policies",
}


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


CLOSED = [endpoint for endpoint in endpoints() if "public" not in endpoint.who.kinds]


class Integration:
    """A server of the tenant's, with an app client of its own and a secret."""

    def __init__(self, owner: Person, client_id: str) -> None:
        self.owner, self.client_id = owner, client_id
        self.app_id = f"{owner.tenant}/{client_id}"
        self.path = f"/tenants/{owner.tenant}/app-clients"
        owner.ok("POST", self.path, {"id": client_id, "name": "A server"})
        self.made = self.rotate()

    @property
    def secret(self) -> str:
        return str(self.made["appSecret"])

    def rotate(self) -> dict[str, Any]:
        made: dict[str, Any] = self.owner.ok("POST", f"{self.path}/{self.client_id}/secrets", {})
        return made

    def headers(self, *, user: str | None = None, secret: str | None = None, app_id: Any = "same") -> dict[str, str]:
        """The two headers; each part is what it should be unless the test says otherwise."""
        pair = f"{self.app_id if user is None else user}:{self.secret if secret is None else secret}"
        basic = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        return basic | ({} if app_id is None else {"X-Service-App-Id": self.app_id if app_id == "same" else app_id})

    def use(self, client: Client, **changed: Any) -> list[httpx.Response]:
        """Read and act with it."""
        headers = self.headers(**changed)
        return [
            client.get("/agents", headers=headers),
            client.post("/agents", json={"id": f"a-{uuid.uuid4().hex[:8]}", "name": "A"}, headers=headers),
        ]

    def at_signer(self, service: Service) -> dict[str, Any]:
        """Return the signer's own answer to an act of it."""
        proof = {"kind": "app_client", "value": f"{self.app_id}:{self.secret}"}
        with greet(service) as wire:
            told: dict[str, Any] = wire.ask("RevokeAgentTokens", {"agent": "absent"}, proof)
        return told


@pytest.fixture
def integration(as_owner: Person) -> Integration:
    return Integration(as_owner, "server")


def statuses(answers: list[httpx.Response]) -> list[int]:
    return [answer.status_code for answer in answers]


def test_it_reads_and_acts_for_its_tenant(
    tenant: Tenant, other_tenant: Tenant, integration: Integration, as_nobody: Client
) -> None:
    tenant.ok("POST", "/agents", {"id": "seen", "name": "Seen"})
    other_tenant.ok("POST", "/agents", {"id": "hidden", "name": "Hidden"})

    assert [one["id"] for one in as_nobody.ok("GET", "/agents", **integration.headers())] == ["seen"]
    assert as_nobody.get("/agents/hidden", headers=integration.headers()).status_code == 404
    assert statuses(integration.use(as_nobody)) == [200, 201]


async def test_acts_of_an_app_client_are_audited_under_its_name(
    integration: Integration, as_nobody: Client, owner: asyncpg.Connection
) -> None:
    request_id = str(uuid.uuid4())
    headers = {**integration.headers(), "X-Request-Id": request_id}

    assert as_nobody.post("/agents", json={"id": "made", "name": "Made"}, headers=headers).status_code == 201

    row = await owner.fetchrow("SELECT * FROM audit WHERE request_id = $1", request_id)
    assert (row["actor_id"], row["action"], row["written_by"]) == (
        "app-client:server",
        "agent.created",
        "custody_signer",
    )


def test_every_route_that_takes_it_is_in_this_files_list() -> None:
    assert {name(endpoint) for endpoint in CLOSED if "app_client" in endpoint.who.kinds} == TAKEN


@pytest.mark.parametrize("endpoint", CLOSED, ids=name)
def test_it_may_call_what_it_should_and_no_more(
    service: Service, common_integration: Integration, as_nobody: Client, endpoint: Endpoint
) -> None:
    path = endpoint.path.replace("<tenant_id>", common_integration.owner.tenant)
    for part in endpoint.path_names:
        path = path.replace(f"<{part}>", "absent" if part in ("agent", "client_id") else ABSENT)
    # A stream goes on for as long as somebody listens.
    path += "?follow=false" if endpoint.media == "text/event-stream" else ""
    # A body that no route accepts: an admitted caller gets 400, and nothing happens.
    body = {"surplus": 1} if endpoint.body is not None else None

    answer = as_nobody.request(endpoint.method, path, json=body, headers=common_integration.headers())

    refused = not answer.is_success and answer.json()["data"]["code"] == "wrong_kind"
    assert refused == (name(endpoint) not in TAKEN), answer.text
    assert answer.status_code != 401


@pytest.fixture(scope="module")
def common_integration(service: Service) -> Iterator[Integration]:
    """One for the tests that change nothing of it."""
    with new_tenant(service) as tenant, closing(member(service, tenant, "owner", mfa=True)) as chief:
        yield Integration(chief, "shared")


# ---- what is no credential


@pytest.mark.parametrize(
    "changed",
    [
        {"secret": "x"},
        {"secret": ""},
        {"user": ""},
        {"user": "server"},
        {"app_id": None},
        {"app_id": ""},
        {"app_id": "other/server"},
        {"user": "other/server", "app_id": "other/server"},
        {"secret": "app_" + "A" * 43},
    ],
    ids=str,
)
def test_a_part_that_is_wrong_is_401(integration: Integration, as_nobody: Client, changed: dict[str, Any]) -> None:
    assert statuses(integration.use(as_nobody, **changed)) == [401, 401]


@pytest.mark.parametrize(
    "spelled",
    [
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic YTpi\nx",
        "Basic " + "A" * 2000,
        "Basic /w==",
        "Basic 4oKsOng=",
        "Digest YTpi",
        "Basic YTpi YTpi",
        "Basic YTpi=",
    ],
)
def test_a_header_that_is_mangled_is_401(as_nobody: Client, spelled: str) -> None:
    try:
        answer = as_nobody.get("/agents", headers={"Authorization": spelled, "X-Service-App-Id": "a"})
    except httpx.LocalProtocolError:
        return
    assert answer.status_code == 401


def test_the_case_of_the_scheme_does_not_matter(integration: Integration, as_nobody: Client) -> None:
    shown = integration.headers()
    shown["Authorization"] = shown["Authorization"].replace("Basic", "bAsIc")

    assert as_nobody.get("/agents", headers=shown).status_code == 200


def test_a_secret_is_for_its_own_client_only(as_owner: Person, integration: Integration, as_nobody: Client) -> None:
    other = Integration(as_owner, "another")

    swapped = {"user": other.app_id, "app_id": other.app_id}
    assert statuses(integration.use(as_nobody, **swapped)) == [401, 401]


def test_with_another_credential_it_is_ambiguous(tenant: Tenant, integration: Integration, as_nobody: Client) -> None:
    answer = as_nobody.get("/agents", headers={**integration.headers(), "X-Service-Key": tenant.key})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "ambiguous_credentials")


def test_it_is_no_person_and_no_tenant_key_before_the_signer(
    service: Service, tenant: Tenant, integration: Integration
) -> None:
    value = f"{integration.app_id}:{integration.secret}"
    with greet(service) as wire:
        for kind, code in (("session", "BadProof"), ("tenant_key", "BadProof"), ("agent", "Forbidden")):
            assert wire.ask("CreateAgents", {"agents": []}, {"kind": kind, "value": value})["kind"] == code
        for message in ("Approve", "Deny"):
            told = wire.ask(message, {"approval_id": ABSENT}, {"kind": "app_client", "value": value})
            assert (told["kind"], told["code"]) == ("Forbidden", "wrong_kind")


# ---- when it stops


def assert_stopped(service: Service, integration: Integration, client: Client) -> None:
    assert statuses(integration.use(client)) == [401, 401]
    assert integration.at_signer(service)["kind"] == "BadProof"


def test_a_revoked_secret_ends_at_once(service: Service, integration: Integration, as_nobody: Client) -> None:
    assert statuses(integration.use(as_nobody)) == [200, 201]

    path = f"{integration.path}/{integration.client_id}/secrets/{integration.made['id']}"
    assert integration.owner.delete(path).status_code == 200

    assert_stopped(service, integration, as_nobody)


def test_a_disabled_client_ends_at_once(service: Service, integration: Integration, as_nobody: Client) -> None:
    assert statuses(integration.use(as_nobody)) == [200, 201]

    integration.owner.ok("PUT", integration.path, {"id": "server", "name": "A server", "enabled": False})

    assert_stopped(service, integration, as_nobody)
    integration.owner.ok("PUT", integration.path, {"id": "server", "name": "A server", "enabled": True})
    assert statuses(integration.use(as_nobody)) == [200, 201]


def test_a_deleted_client_ends_at_once(service: Service, integration: Integration, as_nobody: Client) -> None:
    assert integration.owner.delete(f"{integration.path}/server").status_code == 200

    assert_stopped(service, integration, as_nobody)
    # One of the same name is another.
    again = Integration(integration.owner, "server")
    assert statuses(integration.use(as_nobody)) == [401, 401]
    assert statuses(again.use(as_nobody)) == [200, 201]


async def test_a_secret_that_was_superseded_serves_for_another_day(
    service: Service, integration: Integration, as_nobody: Client, owner: asyncpg.Connection
) -> None:
    newer = integration.rotate()

    assert statuses(integration.use(as_nobody)) == [200, 201]
    assert statuses(integration.use(as_nobody, secret=newer["appSecret"])) == [200, 201]

    left = "SELECT extract(epoch FROM retires_at - now()) FROM app_secrets WHERE id = $1"
    assert 86_000 < await owner.fetchval(left, integration.made["id"]) <= 86_400
    day = "UPDATE app_secrets SET retires_at = retires_at - interval '1 day' WHERE id = $1"
    await owner.execute(day, integration.made["id"])
    assert_stopped(service, integration, as_nobody)
    assert statuses(integration.use(as_nobody, secret=newer["appSecret"])) == [200, 201]


# ---- somebody writes the database

TAMPERED = {
    "a disabled client switched on": "UPDATE app_clients SET enabled = true WHERE tenant_id = $1 AND id = 'server'",
    "a document changed": "UPDATE app_clients SET document = document || ' ' WHERE tenant_id = $1 AND id = 'server'",
    "a secret moved to another client": "UPDATE app_secrets SET client_id = 'another' WHERE tenant_id = $1",
    "a MAC taken away": "UPDATE app_secrets SET mac = '' WHERE tenant_id = $1",
}


@pytest.mark.parametrize("what", TAMPERED)
async def test_a_client_that_the_signer_did_not_write_does_nothing(
    service: Service, tenant: Tenant, integration: Integration, owner: asyncpg.Connection, what: str
) -> None:
    Integration(integration.owner, "another")
    if what.startswith("a disabled"):
        integration.owner.ok("PUT", integration.path, {"id": "server", "name": "A server", "enabled": False})
    if "another client" in what:
        integration.app_id = f"{tenant.id}/another"
    await owner.execute(TAMPERED[what], tenant.id)

    assert integration.at_signer(service)["kind"] == "BadProof"


# ---- what is kept


async def test_no_secret_is_kept_or_logged(
    service: Service, integration: Integration, as_nobody: Client, owner: asyncpg.Connection
) -> None:
    integration.use(as_nobody)
    tail = integration.secret[-30:]

    for table in ("app_clients", "app_secrets", "audit", "idempotency"):
        for row in await owner.fetch(f"SELECT t::text AS row FROM {table} t"):
            assert tail not in row["row"], table
    assert tail not in service.logs()
    assert integration.headers()["Authorization"][6:][-30:] not in service.logs()


def test_the_id_of_a_tenant_may_have_a_colon(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as owner:
        tenant = f"a:b:{uuid.uuid4().hex[:8]}"
        owner.ok("POST", "/tenants", {"id": tenant, "name": "Colons", "apiKeyHash": uuid.uuid4().hex * 2})
        owner.enrol_totp()
        owner.switch(tenant)

        assert statuses(Integration(owner, "server").use(as_nobody)) == [200, 201]


def test_a_credential_that_is_no_text_is_refused_and_counted(service: Service) -> None:
    headers = [(b"Authorization", b"Basic \xc3\xa9"), (b"X-Service-App-Id", b"x")]
    with partner_of(service, SERVICE_RATE_LIMIT_ANONYMOUS_MAX="3") as narrow, Client(base_url=narrow.url) as stranger:
        statuses = [stranger.get("/agents", headers=headers).status_code for _ in range(5)]

    assert statuses == [401, 401, 401, 429, 429]
