"""Secrets: kept, replaced, deleted, and never shown."""

import json
import uuid
from datetime import datetime
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.server import Service
from tests.routes.secrets.makers import keep_route, keep_secret

JSON = {"Content-Type": "application/json"}
KIBIBYTES_64 = 65_536


def canary() -> str:
    """A value that can be found again wherever it got to."""
    return f"canary-{uuid.uuid4().hex}"


def secret_body(**changed: Any) -> dict[str, Any]:
    return {"name": f"s-{uuid.uuid4().hex[:8]}", "value": "value-of-it", **changed}


def test_a_secret_is_kept_and_described_without_its_value(tenant: Tenant) -> None:
    sent = secret_body(value=canary(), description="For the\nbuild", expiresAt="2100-01-31T12:00:00+02:00")

    answer = tenant.post("/secrets", json=sent)

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert {name: made[name] for name in made if name not in ("id", "createdAt")} == {
        "name": sent["name"],
        "description": "For the\nbuild",
        "version": 1,
        "expiresAt": "2100-01-31T10:00:00.000Z",
        "rotatedAt": None,
    }
    assert str(uuid.UUID(made["id"])) == made["id"]
    assert made["createdAt"].endswith("Z")
    assert tenant.ok("GET", f"/secrets/{made['id']}") == made
    assert tenant.ok("GET", "/secrets") == [made]


ODD = {
    "short": ("sk-1234", ["fewer than 8 characters"]),
    "with a mark of its bytes' order in front": ("\ufeffsk-12345678", ["byte-order mark"]),
    "with a blank in front": (" sk-12345678", ["blanks or line ends"]),
    "with a line end behind it": ("sk-12345678\r\n", ["blanks or line ends"]),
    "short and with blanks": (" sk ", ["fewer than 8 characters", "blanks or line ends"]),
    "well": ("sk-12345", []),
    "with blanks inside": ("user: pass word", []),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_value_is_stored_with_a_warning(tenant: Tenant, name: str) -> None:
    value, parts = ODD[name]
    made = tenant.ok("POST", "/secrets", secret_body(value=value))
    path = f"/secrets/{made['id']}"
    rotated = tenant.ok("POST", f"{path}/rotate", {"value": value})
    replaced = tenant.ok("PUT", path, {"value": value})

    for answer in (made, rotated, replaced):
        said = answer.get("warnings", [])
        assert [part for part, sentence in zip(parts, said, strict=True) if part not in sentence] == []
        assert value.strip() not in " ".join(said).split()
    assert "warnings" not in tenant.ok("GET", path)


def test_only_name_and_value_are_needed(tenant: Tenant) -> None:
    made = tenant.ok("POST", "/secrets", secret_body())

    assert (made["description"], made["expiresAt"]) == (None, None)
    assert tenant.ok("POST", "/secrets", secret_body(description=None, expiresAt=None))["description"] is None


@pytest.mark.parametrize(("method", "path"), [("PUT", "/secrets/{id}"), ("POST", "/secrets/{id}/rotate")])
def test_a_new_value_raises_the_version(tenant: Tenant, method: str, path: str) -> None:
    made = keep_secret(tenant)
    path = path.format(**made)

    answers = [tenant.request(method, path, json={"value": "next-value"}) for _ in range(2)]

    second = answers[1].json()["data"]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["data"]["version"] for answer in answers] == [2, 3]
    assert (set(second), second["id"], second["name"]) == (
        {"id", "name", "version", "rotatedAt"},
        made["id"],
        made["name"],
    )
    assert tenant.ok("GET", f"/secrets/{made['id']}") == {**made, "version": 3, "rotatedAt": second["rotatedAt"]}


def test_no_answer_has_the_value(tenant: Tenant) -> None:
    first, second, third = canary(), canary(), canary()
    made = keep_secret(tenant, first)
    path = f"/secrets/{made['id']}"

    answers = [
        tenant.put(path, json={"value": second}),
        tenant.post(f"{path}/rotate", json={"value": third}),
        tenant.post("/secrets", json={"name": made["name"], "value": first}),
        tenant.get(path),
        tenant.get("/secrets"),
        tenant.delete(path),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 409, 200, 200, 200]
    seen = str(made) + "".join(answer.text for answer in answers)
    assert [value for value in (first, second, third) if value in seen] == []


def test_a_name_is_taken_once_within_a_tenant(tenant: Tenant, other_tenant: Tenant) -> None:
    made = keep_secret(tenant)

    answer = tenant.post("/secrets", json=secret_body(name=made["name"]))

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "secret_name_taken")
    assert len(tenant.ok("GET", "/secrets")) == 1
    assert other_tenant.post("/secrets", json=secret_body(name=made["name"])).status_code == 201


def test_a_deleted_secret_is_gone_and_its_name_is_free(tenant: Tenant) -> None:
    made = keep_secret(tenant)
    path = f"/secrets/{made['id']}"

    assert tenant.ok("DELETE", path) == {"deleted": made["id"]}

    answers = [
        tenant.get(path),
        tenant.put(path, json={"value": "v"}),
        tenant.post(f"{path}/rotate", json={"value": "v"}),
        tenant.delete(path),
    ]
    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(404, "secret_absent")] * 4
    assert tenant.ok("GET", "/secrets") == []
    again = tenant.ok("POST", "/secrets", secret_body(name=made["name"]))
    assert again["id"] != made["id"]
    assert tenant.ok("DELETE", f"/secrets/{again['id']}")
    assert tenant.post("/secrets", json=secret_body(name=made["name"])).status_code == 201


def test_another_tenants_secret_is_absent_and_stays_as_it_is(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = keep_secret(other_tenant)
    for missing in (theirs["id"], str(uuid.uuid4())):
        path = f"/secrets/{missing}"

        answers = [
            tenant.get(path),
            tenant.put(path, json={"value": "v"}),
            tenant.post(f"{path}/rotate", json={"value": "v"}),
            tenant.delete(path),
        ]

        assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(404, "secret_absent")}
    assert other_tenant.ok("GET", f"/secrets/{theirs['id']}") == theirs
    assert tenant.ok("GET", "/secrets") == []


def test_secrets_are_listed_newest_first_and_paged(tenant: Tenant) -> None:
    ids = [keep_secret(tenant)["id"] for _ in range(4)]
    tenant.ok("DELETE", f"/secrets/{ids.pop(1)}")

    answer = tenant.get("/secrets?limit=2")

    assert [one["id"] for one in answer.json()["data"]] == ids[:0:-1]
    assert answer.headers["X-Total-Count"] == "3"
    assert answer.headers["Cache-Control"] == "no-store"
    assert [one["id"] for one in tenant.ok("GET", "/secrets?limit=2&offset=2")] == ids[:1]


def test_an_agent_may_touch_no_secret(tenant: Tenant, agent: Agent) -> None:
    made = keep_secret(tenant)
    path = f"/secrets/{made['id']}"

    answers = [
        agent.get("/secrets"),
        agent.post("/secrets", json=secret_body()),
        agent.get(path),
        agent.put(path, json={"value": "v"}),
        agent.post(f"{path}/rotate", json={"value": "v"}),
        agent.delete(path),
    ]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(403, "wrong_kind")}
    assert tenant.ok("GET", "/secrets") == [made]


def test_a_repeated_request_makes_one_secret_and_one_version(tenant: Tenant) -> None:
    body, key = secret_body(), {"Idempotency-Key": str(uuid.uuid4())}

    first, second = tenant.post("/secrets", json=body, headers=key), tenant.post("/secrets", json=body, headers=key)
    path = f"/secrets/{first.json()['data']['id']}/rotate"
    rotated = [tenant.post(path, json={"value": "next-value"}, headers=key) for _ in range(2)]

    assert (second.status_code, second.json()) == (201, first.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    assert [answer.json()["data"]["version"] for answer in rotated] == [2, 2]
    assert [one["version"] for one in tenant.ok("GET", "/secrets")] == [2]


MALFORMED = {
    "no name": ({"name": None}, "name"),
    "empty name": ({"name": ""}, "name"),
    "name is a number": ({"name": 5}, "name"),
    "name with a line end": ({"name": "a\n"}, "name"),
    "name too long": ({"name": "x" * 201}, "name"),
    "no value": ({"value": None}, "value"),
    "empty value": ({"value": ""}, "value"),
    "value is a number": ({"value": 5}, "value"),
    "value is an object": ({"value": {"a": "b"}}, "value"),
    "value too long": ({"value": "x" * (KIBIBYTES_64 + 1)}, "value"),
    "value too long in bytes": ({"value": "é" * (KIBIBYTES_64 // 2 + 1)}, "value"),
    "description is a list": ({"description": []}, "description"),
    "description with NUL": ({"description": "a\0"}, "description"),
    "description too long": ({"description": "x" * 1001}, "description"),
    "expiry is a number": ({"expiresAt": 4102444800}, "expiresAt"),
    "expiry is no time": ({"expiresAt": "tomorrow"}, "expiresAt"),
    "expiry without zone": ({"expiresAt": "2100-01-31T12:00:00"}, "expiresAt"),
    "expiry is a day": ({"expiresAt": "2100-01-31"}, "expiresAt"),
    "expiry on no day": ({"expiresAt": "2100-02-30T12:00:00Z"}, "expiresAt"),
    "expiry beyond time": ({"expiresAt": "9999-12-31T23:59:59-14:00"}, "expiresAt"),
    "expiry before time": ({"expiresAt": "0001-01-01T00:00:00+14:00"}, "expiresAt"),
    "empty expiry": ({"expiresAt": ""}, "expiresAt"),
}


@pytest.mark.parametrize(("changed", "field"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_secret_is_400_and_the_field_is_named(tenant: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = tenant.post("/secrets", json=secret_body(**changed))

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [field]), answer.text
    assert answer.json()["error"].startswith((f"{field}: ", f"{field} must be "))
    assert tenant.ok("GET", "/secrets") == []


@pytest.mark.parametrize("past", ["2020-01-31T12:00:00Z", "1969-12-31T23:59:59Z"])
def test_a_secret_that_is_expired_already_is_400(tenant: Tenant, past: str) -> None:
    answer = tenant.post("/secrets", json=secret_body(expiresAt=past))

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["expiresAt"])
    assert "future" in answer.json()["error"]


@pytest.mark.parametrize(
    "body", [{}, {"value": ""}, {"value": 5}, {"value": "v", "name": "n"}, {"value": "v" * 65_537}]
)
def test_a_malformed_new_value_is_400_and_changes_nothing(tenant: Tenant, body: dict[str, Any]) -> None:
    made = keep_secret(tenant)
    path = f"/secrets/{made['id']}"

    answers = [tenant.put(path, json=body), tenant.post(f"{path}/rotate", json=body)]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert all(answer.json()["data"]["fields"] for answer in answers)
    assert tenant.ok("GET", path) == made


@pytest.mark.parametrize("value", ["v", " ", "a\r\nb\0", "ключ 🔑", "x" * KIBIBYTES_64, "é" * (KIBIBYTES_64 // 2)])
def test_any_text_up_to_64_kib_is_a_value(tenant: Tenant, value: str) -> None:
    made = keep_secret(tenant, value)

    assert tenant.ok("PUT", f"/secrets/{made['id']}", {"value": value})["version"] == 2


@pytest.mark.parametrize("given", ["2100-01-31T10:00:00.1239Z", "2100-01-31T12:00:00.123456+02:00"])
def test_an_expiry_is_kept_in_utc_and_milliseconds(tenant: Tenant, given: str) -> None:
    made = keep_secret(tenant, expiresAt=given)

    assert made["expiresAt"] == tenant.ok("GET", f"/secrets/{made['id']}")["expiresAt"]
    assert datetime.fromisoformat(made["expiresAt"]).microsecond == 123_000


async def test_no_refusal_log_line_or_row_has_a_value(
    tenant: Tenant, service: Service, owner: asyncpg.Connection
) -> None:
    value, made = canary(), keep_secret(tenant)
    long = value * 3000
    bodies = [
        json.dumps(said).encode()
        for said in (
            secret_body(value=[value]),
            secret_body(value={"value": value}),
            secret_body(value=long),
            secret_body(value="é" * 30_000 + long),
            secret_body(value=value, surplus=value),
            secret_body(value=value, name=""),
            secret_body(value=value, description=5),
            secret_body(value=value, expiresAt="never"),
            secret_body(value=value, name=made["name"]),
            secret_body(value=value),
            {"value": value},
            value,
            [value],
        )
    ] + [
        f'{{"name":"n","value":"{value}","value":"{value}"}}'.encode(),
        f'{{"name":"n","value":"{value}"'.encode(),
        f'{{"name":"n","value":"{value}'.encode() + b'\xff"}',
        f'{{"name":"n","value":"{value}\\ud800"}}'.encode(),
    ]
    paths = ("/secrets", f"/secrets/{made['id']}/rotate", f"/secrets/{uuid.uuid4()}/rotate", "/secrets/routes")

    answers = [
        tenant.post(path, content=body, headers={**JSON, "Idempotency-Key": str(uuid.uuid4())})
        for path in paths
        for body in bodies
    ]
    answers.append(tenant.put(f"/secrets/{made['id']}", json={"value": value, "surplus": value}))

    assert {answer.status_code for answer in answers} >= {200, 201, 400, 404, 409}
    assert [answer.text for answer in answers if value in answer.text] == []
    assert value not in service.logs()
    for table in ("audit", "outbox", "events", "idempotency", "secrets"):
        rows = await owner.fetch(f"SELECT t::text AS row FROM {table} t WHERE tenant_id = $1", tenant.id)
        # A column of bytes shows as hex.
        found = [row["row"] for row in rows if value in row["row"] or value.encode().hex() in row["row"]]
        assert found == [], table


async def test_each_act_leaves_its_own_word_in_the_trail(tenant: Tenant, owner: asyncpg.Connection) -> None:
    made = keep_secret(tenant)
    path = f"/secrets/{made['id']}"
    tenant.ok("PUT", path, {"value": "v"})
    tenant.ok("POST", f"{path}/rotate", {"value": "v"})
    tenant.ok("DELETE", path)

    rows = await owner.fetch(
        "SELECT action, written_by FROM audit WHERE tenant_id = $1 AND resource_id = $2 ORDER BY seq",
        tenant.id,
        made["id"],
    )

    assert [row["action"] for row in rows] == ["secret.created", "secret.updated", "secret.rotated", "secret.deleted"]
    assert {row["written_by"] for row in rows} == {"custody_signer"}


async def test_a_deleted_or_replaced_value_is_destroyed(tenant: Tenant, owner: asyncpg.Connection) -> None:
    made = keep_secret(tenant)
    kept = "SELECT blob FROM sealed WHERE tenant_id = $1 AND owner_kind = 'secret' AND owner = $2"
    first = await owner.fetchval(kept, tenant.id, made["id"])

    tenant.ok("PUT", f"/secrets/{made['id']}", {"value": "next"})

    second = await owner.fetch(kept, tenant.id, made["id"])
    assert [row["blob"] == first for row in second] == [False]
    tenant.ok("DELETE", f"/secrets/{made['id']}")
    assert await owner.fetch(kept, tenant.id, made["id"]) == []


def test_the_path_of_the_routes_is_no_secret(tenant: Tenant) -> None:
    route = keep_route(tenant)

    assert tenant.ok("GET", "/secrets/routes") == [route]
    answers = [
        tenant.put("/secrets/routes", json={"value": "v"}),
        tenant.delete("/secrets/routes"),
        tenant.post("/secrets/routes/rotate", json={"value": "v"}),
    ]
    assert {answer.status_code for answer in answers} <= {400, 404, 405}
    assert tenant.ok("GET", "/secrets/routes") == [route]
