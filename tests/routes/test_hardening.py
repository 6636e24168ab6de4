"""Signed and timed requests on sensitive routes. See docs/api.md."""

import base64
import hashlib
import hmac
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from custody.identity.request_signature import canonical
from tests.fixtures.callers import ADDRESS, Agent, Client, Tenant, platform_client
from tests.fixtures.deployments import owner_of, partner_of
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.routes.tenants.makers import as_app, keep_client, keep_secret

BODY = b'{"id":"agent-x","name":"An agent"}'


class Signing:
    """Says what is signed and what is sent, which need not be the same."""

    def __init__(self, secret: str, tenant: str, **said: Any) -> None:
        self.secret = secret
        self.key = said.pop("idempotency_key", uuid.uuid4().hex)
        self.timestamp: str | None = said.pop("timestamp", str(int(time.time())))
        self.expires_at: str | None = said.pop("expires_at", None)
        self.says = {"method": "POST", "path": "/agents", "tenant": tenant, "body": BODY, **said}

    @property
    def signature(self) -> str:
        says = self.says
        content = canonical(
            says["method"], says["path"], says["tenant"], self.timestamp, self.expires_at, self.key, says["body"]
        )
        return "v1=" + hmac.new(self.secret.encode(), content, hashlib.sha256).hexdigest()

    def headers(self, **changed: str | None) -> dict[str, str]:
        """The headers of the request; None leaves one out."""
        found: dict[str, str | None] = {
            "Content-Type": "application/json",
            "Idempotency-Key": self.key,
            "X-Service-Signature": self.signature,
            "X-Service-Request-Timestamp": self.timestamp,
            "X-Service-Request-Expires-At": self.expires_at,
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        return {name: value for name, value in found.items() if value is not None}


def agent_body() -> bytes:
    return b'{"id":"agent-%s","name":"An agent"}' % uuid.uuid4().hex.encode()


def send(client: Client, signing: Signing, *, path: str = "/agents", **changed: str | None) -> httpx.Response:
    return client.post(path, content=signing.says["body"], headers=signing.headers(**changed))


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


@pytest.fixture
def secret(as_owner: Person) -> str:
    """A request-signing key of the test's tenant."""
    return as_owner.ok("POST", f"/tenants/{as_owner.tenant}/request-signing-keys", {})["signingSecret"]


@pytest.fixture
def key_id(as_owner: Person, secret: str) -> str:
    return as_owner.ok("GET", f"/tenants/{as_owner.tenant}/request-signing-keys")[0]["id"]


@pytest.fixture(scope="module")
def strict(service: Service) -> Iterator[Service]:
    """A deployment that takes no change without a time and a signature."""
    settings = {"SERVICE_REQUIRE_REQUEST_EXPIRY": "true", "SERVICE_REQUIRE_AUTH_SIGNATURE": "true"}
    with partner_of(service, SERVICE_RATE_LIMIT_VERIFY="0", SERVICE_RATE_LIMIT_NONCE="0", **settings) as running:
        yield running


def test_a_signed_request_is_taken_once_and_its_repetition_is_a_replay(tenant: Tenant, secret: str) -> None:
    signing = Signing(secret, tenant.id, body=agent_body())

    first, again = send(tenant, signing), send(tenant, signing)

    assert (first.status_code, again.status_code) == (201, 201)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"


def test_a_signature_that_was_used_is_refused_under_another_key(tenant: Tenant, secret: str) -> None:
    # An attacker cannot change the Idempotency-Key, which is signed; a client that signs without one and says another.
    signing = Signing(secret, tenant.id, body=agent_body())
    assert send(tenant, signing).status_code == 201

    assert code_of(send(tenant, signing, Idempotency_Key=uuid.uuid4().hex)) == (401, "signature_mismatch")


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        ({"method": "PUT"}, {}),
        ({"path": "/agents?a=1"}, {}),
        ({"tenant": "another"}, {}),
        ({"tenant": ""}, {}),
        ({}, {"X_Service_Request_Timestamp": 1}),
        ({}, {"X_Service_Request_Timestamp": None}),
        ({}, {"X_Service_Request_Expires_At": 60}),
        ({}, {"Idempotency_Key": "another-key-altogether"}),
    ],
)
def test_a_signature_over_something_else_is_refused(
    tenant: Tenant, secret: str, said: dict[str, Any], changed: dict[str, Any]
) -> None:
    signing = Signing(secret, **{"tenant": tenant.id, "body": agent_body(), **said})
    # Seconds from now: the parameters are made long before the test runs.
    sent_so = {name: str(int(time.time()) + to) if isinstance(to, int) else to for name, to in changed.items()}

    assert code_of(send(tenant, signing, **sent_so)) == (401, "signature_mismatch")


def test_a_signature_over_another_body_or_query_is_refused(tenant: Tenant, secret: str) -> None:
    signing = Signing(secret, tenant.id, body=agent_body())

    another_body = tenant.post("/agents", content=agent_body(), headers=signing.headers())
    another_query = tenant.post("/agents?x=1", content=signing.says["body"], headers=signing.headers())

    assert code_of(another_body) == code_of(another_query) == (401, "signature_mismatch")


def test_the_query_is_signed_as_it_was_sent(tenant: Tenant, secret: str) -> None:
    path = "/agents?b=%20x&a=1"
    signing = Signing(secret, tenant.id, path=path, body=agent_body())

    assert send(tenant, signing, path=path).status_code == 201


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ({"timestamp": str(int(time.time()) - 100_000)}, "request_stale"),
        ({"timestamp": str(int(time.time()) + 100_000)}, "request_from_the_future"),
        ({"timestamp": "yesterday"}, "request_timestamp_malformed"),
        ({"timestamp": None, "expires_at": str(int(time.time()) - 1)}, "request_expired"),
        ({"timestamp": None, "expires_at": str(int(time.time()) + 100_000)}, "request_expiry_too_far"),
    ],
)
def test_times_are_looked_at_whether_they_are_wanted_or_not(
    tenant: Tenant, secret: str, times: dict[str, str | None], code: str
) -> None:
    signing = Signing(secret, tenant.id, body=agent_body(), **times)

    assert code_of(send(tenant, signing)) == (401, code)
    assert code_of(send(tenant, signing, X_Service_Signature=None)) == (401, code)


def test_milliseconds_and_iso_times_serve(tenant: Tenant, secret: str) -> None:
    now = time.time()
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    for timestamp in (str(int(now * 1000)), iso):
        signing = Signing(secret, tenant.id, body=agent_body(), timestamp=timestamp)
        assert send(tenant, signing).status_code == 201


def test_a_signed_request_needs_an_idempotency_key(tenant: Tenant, secret: str) -> None:
    signing = Signing(secret, tenant.id, body=agent_body())

    assert code_of(send(tenant, signing, Idempotency_Key=None)) == (400, "idempotency_key_required")


@pytest.mark.parametrize("value", ["v1=", "v1=zz", "v2=" + "0" * 64, "V1=" + "0" * 64, "0" * 64, "p256=!!", "p256="])
def test_a_malformed_signature_is_told_as_such(tenant: Tenant, secret: str, value: str) -> None:
    signing = Signing(secret, tenant.id, body=agent_body())

    assert code_of(send(tenant, signing, X_Service_Signature=value)) == (401, "signature_malformed")


def test_a_header_that_is_given_twice_or_is_not_ascii_is_refused(tenant: Tenant, secret: str) -> None:
    signing = Signing(secret, tenant.id, body=agent_body())
    headers = [(name.encode(), value.encode()) for name, value in signing.headers().items()]
    strange = [
        (b"X-Service-Signature", signing.signature.encode()),
        (b"X-Service-Signing-Key-Id", b"\xff"),
    ]

    for surplus in strange:
        answer = tenant.post("/agents", content=signing.says["body"], headers=[*headers, surplus])
        assert code_of(answer) == (400, "header_malformed")
    twice = (b"Idempotency-Key", b"another-key-altogether")
    answer = tenant.post("/agents", content=signing.says["body"], headers=[*headers, twice])
    assert code_of(answer) == (400, "bad_idempotency_key")


def test_a_p256_signature_is_read_but_nobody_has_such_a_key_yet(tenant: Tenant, secret: str) -> None:
    signature = generate_private_key(SECP256R1()).sign(b"anything", ECDSA(SHA256()))
    signing = Signing(secret, tenant.id, body=agent_body())

    answer = send(tenant, signing, X_Service_Signature="p256=" + base64.b64encode(signature).decode())

    assert code_of(answer) == (401, "signature_key_unknown")


def test_the_key_that_is_named_is_the_one_that_counts(
    tenant: Tenant, as_owner: Person, secret: str, key_id: str
) -> None:
    newer = as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys", {})

    def send_naming(signed_with: str, name: str) -> httpx.Response:
        return send(tenant, Signing(signed_with, tenant.id, body=agent_body()), X_Service_Signing_Key_Id=name)

    assert send_naming(secret, key_id).status_code == 201
    assert send_naming(newer["signingSecret"], newer["id"]).status_code == 201
    assert code_of(send_naming(secret, newer["id"])) == (401, "signature_mismatch")
    assert code_of(send_naming(secret, str(uuid.uuid4()))) == (401, "signature_key_unknown")


def test_a_retiring_key_serves_until_it_is_revoked(tenant: Tenant, as_owner: Person, secret: str, key_id: str) -> None:
    as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys", {})
    assert send(tenant, Signing(secret, tenant.id, body=agent_body())).status_code == 201

    as_owner.ok("DELETE", f"/tenants/{tenant.id}/request-signing-keys/{key_id}")
    assert code_of(send(tenant, Signing(secret, tenant.id, body=agent_body()))) == (401, "signature_mismatch")


def test_a_key_of_another_tenant_does_not_sign(tenant: Tenant, other_tenant: Tenant, secret: str) -> None:
    assert code_of(send(other_tenant, Signing(secret, other_tenant.id, body=agent_body()))) == (
        401,
        "signature_key_unknown",
    )


def test_an_app_client_signs_with_its_secret(service: Service, as_owner: Person, secret: str) -> None:
    client = {"id": "backend", "name": "Backend", "environment": "production"}
    as_owner.ok("POST", f"/tenants/{as_owner.tenant}/app-clients", client)
    made = as_owner.ok("POST", f"/tenants/{as_owner.tenant}/app-clients/backend/secrets", {})
    app_id, app_secret = f"{as_owner.tenant}/backend", made["appSecret"]
    basic = base64.b64encode(f"{app_id}:{app_secret}".encode()).decode()
    with Client(base_url=service.url, headers={"Authorization": f"Basic {basic}", "X-Service-App-Id": app_id}) as app:
        own = send(app, Signing(app_secret, as_owner.tenant, body=agent_body()))
        tenants = send(app, Signing(secret, as_owner.tenant, body=agent_body()))

    assert own.status_code == 201
    assert code_of(tenants) == (401, "signature_mismatch")


def test_under_a_platform_key_that_key_signs_and_no_tenant_is_named(service: Service, secret: str) -> None:
    body = b'{"id":"tenant-%s","name":"A tenant"}' % uuid.uuid4().hex[:12].encode()
    said = {"path": "/platform/tenants", "body": body}
    with platform_client(service) as platform:
        good = send(platform, Signing(service.platform_key, "", **said), path="/platform/tenants")
        bad = send(platform, Signing(secret, "", **said), path="/platform/tenants")

    assert good.status_code == 201
    assert code_of(bad) == (401, "signature_mismatch")


def test_a_strict_deployment_wants_time_and_signature_on_every_change_but_sign_in(
    strict: Service, as_owner: Person, tenant: Tenant, secret: str
) -> None:
    with Client(base_url=strict.url, headers={"X-Service-Key": tenant.key}) as client:
        signing = Signing(secret, tenant.id, body=agent_body())
        bare = client.post("/agents", json={"id": "x", "name": "x"})
        timed = client.post(
            "/agents", json={"id": "x", "name": "x"}, headers={"X-Service-Request-Timestamp": str(int(time.time()))}
        )
        signed, read = send(client, signing), client.get("/agents")

    assert code_of(bare) == (401, "request_time_required")
    assert code_of(timed) == (401, "signature_required")
    assert (signed.status_code, read.status_code) == (201, 200)
    with Client(base_url=strict.url) as stranger:
        assert stranger.post("/auth/refresh", json={"refreshToken": "x"}).json()["data"]["code"] == (
            "refresh_token_invalid"
        )


def test_a_persons_changes_are_signed_with_the_tenants_key(service: Service, secret: str, as_owner: Person) -> None:
    with closing(member(service, as_owner.tenant, "admin", mfa=True)) as admin:
        assert send(admin, Signing(secret, as_owner.tenant, body=agent_body())).status_code == 201


async def test_a_signature_without_a_time_does_not_come_back_when_its_key_is_forgotten(
    service: Service, tenant: Tenant, secret: str
) -> None:
    body = b"[]"
    agent = tenant.agent()
    path = f"/agents/{agent.id}/policies"
    signing = Signing(secret, tenant.id, method="PUT", path=path, body=body, timestamp=None)

    def put() -> httpx.Response:
        return tenant.put(path, content=body, headers=signing.headers())

    assert put().status_code == 200
    assert put().headers["Idempotency-Replayed"] == "true"
    async with owner_of(service.database) as connection:
        await connection.execute(
            "UPDATE used_signatures SET used_at = used_at - interval '24 hours' WHERE tenant_id = $1", tenant.id
        )
        await connection.execute("DELETE FROM idempotency WHERE tenant_id = $1", tenant.id)

    assert code_of(put()) == (401, "signature_replayed")


def payment(secret: str, tenant: Tenant, agent: Agent, **said: Any) -> Signing:
    body = b'{"to":"%s","value":"1","broadcast":false}' % ADDRESS.encode()
    return Signing(secret, tenant.id, path=f"/vault/{agent.id}/sign", body=body, **said)


async def pass_time(owner: asyncpg.Connection, tenant: Tenant, seconds: int) -> None:
    """Let time pass for the signatures that a tenant has used."""
    await owner.execute(
        "UPDATE used_signatures SET used_at = used_at - make_interval(secs => $2) WHERE tenant_id = $1",
        tenant.id,
        seconds,
    )


def test_a_signed_order_that_was_overheard_is_no_second_one_for_somebody_else(
    tenant: Tenant, as_owner: Person, secret: str
) -> None:
    agent = tenant.agent()
    signing = payment(secret, tenant, agent)
    path = signing.says["path"]

    first, stolen, again = (send(one, signing, path=path) for one in (agent, as_owner, agent))

    assert first.status_code == 200
    assert code_of(stolen) == (401, "signature_replayed")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert len(tenant.ok("GET", f"/vault/{agent.id}/history")) == 1


@pytest.mark.parametrize("timed", [True, False])
async def test_a_signed_order_that_was_refused_does_not_run_later(
    tenant: Tenant, as_owner: Person, secret: str, owner: asyncpg.Connection, timed: bool
) -> None:
    agent = tenant.agent()
    signing = payment(secret, tenant, agent, **({} if timed else {"timestamp": None}))
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {})
    refused = send(agent, signing, path=signing.says["path"])
    as_owner.ok("POST", f"/agents/{agent.id}/unfreeze")

    await pass_time(owner, tenant, 11)
    late = send(agent, signing, path=signing.says["path"])

    assert refused.status_code == 423
    assert code_of(late) == (401, "signature_replayed")
    assert tenant.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_refused_signed_request_may_be_retried(tenant: Tenant, secret: str) -> None:
    signing = Signing(secret, tenant.id, path="/agents/soon-there/token", body=b"{}")
    refused = send(tenant, signing, path=signing.says["path"])
    tenant.ok("POST", "/agents", {"id": "soon-there", "name": "x"})

    assert (refused.status_code, send(tenant, signing, path=signing.says["path"]).status_code) == (404, 200)


async def test_a_completed_request_is_replayed_while_its_answer_is_kept(
    tenant: Tenant, secret: str, owner: asyncpg.Connection
) -> None:
    signing = Signing(secret, tenant.id, body=agent_body(), timestamp=None)
    assert send(tenant, signing).status_code == 201

    await pass_time(owner, tenant, 3600)
    kept = send(tenant, signing)
    # So late that it may be gone before the act looks for it.
    await owner.execute(
        "UPDATE idempotency SET expires_at = now() + interval '30 seconds' WHERE tenant_id = $1", tenant.id
    )

    assert (kept.status_code, kept.headers["Idempotency-Replayed"]) == (201, "true")
    assert code_of(send(tenant, signing)) == (401, "signature_replayed")


async def test_an_answer_under_the_same_key_to_another_route_lets_nothing_run(
    tenant: Tenant, secret: str, owner: asyncpg.Connection
) -> None:
    key = uuid.uuid4().hex
    signing = Signing(secret, tenant.id, path="/agents/late/token", body=b"{}", idempotency_key=key)
    assert send(tenant, signing, path=signing.says["path"]).status_code == 404
    tenant.ok("POST", "/agents", {"id": "late", "name": "x"}, **{"Idempotency-Key": key})

    await pass_time(owner, tenant, 11)

    assert code_of(send(tenant, signing, path=signing.says["path"])) == (401, "signature_replayed")


def test_where_signatures_are_wanted_the_first_key_and_the_brakes_come_without(
    strict: Service, as_platform: Client, tenant: Tenant
) -> None:
    agent = tenant.agent()
    brakes = (f"/agents/{agent.id}/freeze", f"/tenants/{tenant.id}/freeze")
    with closing(sign_in(strict)) as person:
        as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": "owner"})
        person.enrol_totp()
        person.switch(tenant.id)
        person.headers["X-Service-Request-Timestamp"] = str(int(time.time()))
        frozen = [person.post(path, json={}).status_code for path in brakes]
        made = person.post(f"/tenants/{tenant.id}/request-signing-keys")
        secret, thaw = made.json()["data"]["signingSecret"], f"/tenants/{tenant.id}/unfreeze"
        wrong = send(person, Signing("another", tenant.id, path=brakes[1], body=b"{}"), path=brakes[1])
        bare = person.post(thaw)
        signed = send(person, Signing(secret, tenant.id, path=thaw, body=b""), path=thaw)

    assert (frozen, made.status_code, signed.status_code) == ([200, 200], 201, 200)
    assert code_of(wrong) == (401, "signature_mismatch")
    assert code_of(bare) == (401, "signature_required")


async def count_used(owner: asyncpg.Connection, tenant: str) -> int:
    return await owner.fetchval("SELECT count(*) FROM used_signatures WHERE tenant_id = $1", tenant)


async def test_used_signatures_go_a_day_after_their_key(
    tenant: Tenant, as_owner: Person, secret: str, key_id: str, owner: asyncpg.Connection
) -> None:
    for _ in range(3):
        assert send(tenant, Signing(secret, tenant.id, body=agent_body(), timestamp=None)).status_code == 201
    newer = as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys")["signingSecret"]
    as_owner.ok("DELETE", f"/tenants/{tenant.id}/request-signing-keys/{key_id}")

    def sign_again() -> None:
        assert send(tenant, Signing(newer, tenant.id, body=agent_body(), timestamp=None)).status_code == 201

    sign_again()
    assert await count_used(owner, tenant.id) == 4
    await owner.execute("UPDATE signing_keys SET revoked_at = now() - interval '25 hours' WHERE id = $1", key_id)
    sign_again()
    # Those of the key that still signs stay.
    assert await count_used(owner, tenant.id) == 2


async def test_used_signatures_of_an_app_client_go_with_its_secret(
    service: Service, as_owner: Person, owner: asyncpg.Connection
) -> None:
    keep_client(as_owner, "backend")
    first, second = keep_secret(as_owner, "backend"), keep_secret(as_owner, "backend")
    with as_app(as_owner, first["appId"], first["appSecret"]) as app:
        for _ in range(2):
            signing = Signing(first["appSecret"], as_owner.tenant, body=agent_body(), timestamp=None)
            assert send(app, signing).status_code == 201
    await owner.execute("UPDATE app_secrets SET retires_at = now() - interval '25 hours' WHERE id = $1", first["id"])
    with as_app(as_owner, second["appId"], second["appSecret"]) as app:
        signing = Signing(second["appSecret"], as_owner.tenant, body=agent_body(), timestamp=None)
        assert send(app, signing).status_code == 201

    assert await count_used(owner, as_owner.tenant) == 1
    as_owner.ok("DELETE", f"/tenants/{as_owner.tenant}/app-clients/backend")
    assert await count_used(owner, as_owner.tenant) == 0


async def test_used_signatures_go_with_their_tenant_and_once_they_are_too_old(
    as_platform: Client, tenant: Tenant, secret: str, owner: asyncpg.Connection
) -> None:
    assert send(tenant, Signing(secret, tenant.id, body=agent_body())).status_code == 201
    await owner.execute(
        "UPDATE used_signatures SET expires_at = now() - interval '2 minutes' WHERE tenant_id = $1", tenant.id
    )
    assert send(tenant, Signing(secret, tenant.id, body=agent_body(), timestamp=None)).status_code == 201
    assert await count_used(owner, tenant.id) == 1

    as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}")

    assert await count_used(owner, tenant.id) == 0
