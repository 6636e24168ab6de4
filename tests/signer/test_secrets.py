"""Secrets and credential routes as the signer keeps them: what goes in, what is refused, and what stays behind."""

import asyncio
import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import asyncpg
import msgspec
import pytest

from ops import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.eventually import soon
from tests.fixtures.safes import (
    DEFAULTS,
    FORMAT,
    HOST,
    NOBODY,
    VALUE,
    Safe,
    ahead,
    code_of,
    tamper,
)
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import ask_as_tenant, done_as_tenant, greet


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_secrets")) as service:
        yield service


@pytest.fixture
def safe(apart: Service) -> Iterator[Safe]:
    """One of this test's own."""
    with new_tenant(apart) as tenant:
        yield Safe(apart, tenant)


@pytest.fixture
def foreign(apart: Service) -> Iterator[Safe]:
    """Another tenant's."""
    with new_tenant(apart) as tenant:
        yield Safe(apart, tenant)


def test_a_secret_is_answered_with_what_may_be_known_of_it_and_revealed_to_the_proxy_alone(safe: Safe) -> None:
    made = safe.do("CreateSecret", name="stripe", value=VALUE, description="of the shop", expires_at=ahead(days=1))
    route = safe.do("CreateCredentialRoute", secret=made["id"], fields=HOST | FORMAT | {"priority": 3})
    revealed = safe.reveal(route["id"])

    said = {key: made[key] for key in ("name", "description", "version", "rotatedAt")}
    assert said == {"name": "stripe", "description": "of the shop", "version": 1, "rotatedAt": None}
    assert set(made) == {*said, "id", "expiresAt", "createdAt"}
    assert route.items() >= (DEFAULTS | HOST | FORMAT | {"priority": 3, "secretId": made["id"]}).items()
    assert set(route) == {*DEFAULTS, *HOST, "id", "secretId", "createdAt"}
    assert (revealed["type"], revealed["secret_id"], revealed["secret_version"]) == ("Revealed", made["id"], 1)
    assert revealed["value"] == VALUE.encode()
    assert revealed["fields"] == DEFAULTS | HOST | FORMAT | {"priority": 3}


def test_the_newest_version_is_revealed_and_the_one_before_it_is_gone(safe: Safe) -> None:
    rotated = safe.rotate("second")
    put = safe.do("RotateSecret", secret=safe.secret, value="third", rotate=False)
    revealed = safe.reveal()

    assert set(rotated) == {"id", "name", "version", "rotatedAt"}
    assert (rotated["id"], rotated["name"], rotated["version"], put["version"]) == (safe.secret, "openai", 2, 3)
    assert (revealed["secret_version"], revealed["value"]) == (3, b"third")


def test_a_deleted_secret_is_gone_and_its_name_free(safe: Safe) -> None:
    assert safe.do("DeleteSecret", secret=safe.secret) == {"deleted": safe.secret}

    assert code_of(safe.reveal()) == ("Forbidden", "secret_unavailable")
    again = {"secret": safe.secret}
    assert code_of(safe.ask("DeleteSecret", again)) == ("NotFound", "secret_absent")
    assert code_of(safe.ask("RotateSecret", again | {"value": "v", "rotate": True})) == ("NotFound", "secret_absent")
    assert code_of(safe.ask("CreateCredentialRoute", again | {"fields": HOST})) == ("NotFound", "secret_absent")
    # A route that points nowhere can still be changed and deleted.
    assert safe.do("ChangeCredentialRoute", route=safe.route, changes={"priority": 1})["priority"] == 1
    assert safe.make_secret("openai") != safe.secret


def test_a_name_is_taken_by_a_living_secret_of_the_same_tenant_only(safe: Safe, foreign: Safe) -> None:
    assert code_of(safe.ask("CreateSecret", {"name": "openai", "value": "v"})) == ("Conflict", "secret_name_taken")
    assert foreign.make_secret("other")
    assert safe.make_secret("other")


async def test_an_expired_secret_is_not_revealed(safe: Safe, apart: Service) -> None:
    secret = safe.make_secret("short", expires_at=ahead(seconds=3))
    route = safe.make_route(secret)

    assert await soon(lambda: code_of(safe.reveal(route)), ("Forbidden", "secret_unavailable"))


def test_a_route_is_disabled_changed_and_deleted(safe: Safe) -> None:
    disabled = safe.do("ChangeCredentialRoute", route=safe.route, changes={"enabled": False})
    assert disabled.items() >= (DEFAULTS | HOST | FORMAT | {"enabled": False, "id": safe.route}).items()
    assert code_of(safe.reveal()) == ("Forbidden", "route_disabled")

    changes = {"enabled": True, "injectAs": "query", "injectKey": "key", "hostPattern": "API.Example.COM:8443"}
    safe.do("ChangeCredentialRoute", route=safe.route, changes=changes)
    assert safe.reveal()["fields"] == DEFAULTS | FORMAT | changes | {"hostPattern": "api.example.com:8443"}

    assert safe.do("DeleteCredentialRoute", route=safe.route) == {"deleted": safe.route}
    assert code_of(safe.reveal()) == ("NotFound", "credential_route_absent")
    gone = {"route": safe.route}
    assert code_of(safe.ask("DeleteCredentialRoute", gone)) == ("NotFound", "credential_route_absent")
    assert code_of(safe.ask("ChangeCredentialRoute", gone | {"changes": {}})) == (
        "NotFound",
        "credential_route_absent",
    )


def test_secrets_outlive_the_signer(safe: Safe, apart: Service) -> None:
    apart.kill("signer")
    apart.start("signer")

    assert safe.reveal()["value"] == VALUE.encode()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"value": "é" * 32_769}, "value_too_long"),
        ({"expires_at": ahead(seconds=-1)}, "bad_expiry"),
        ({"expires_at": "2999-01-01T00:00:00"}, "bad_expiry"),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, "bad_expiry"),
        ({"description": "d" * 1001}, "bad_description"),
        ({"description": "a\0b"}, "bad_description"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused(safe: Safe, change: dict[str, Any], code: str) -> None:
    assert code_of(safe.ask("CreateSecret", {"name": "new", "value": "v"} | change)) == ("BadOrder", code)


def test_the_longest_and_the_shortest_value_come_out_as_they_went_in(safe: Safe) -> None:
    for name, value in (("long", "é" * 32_768), ("short", "\0"), ("lines", "a\r\nb")):
        route = safe.make_route(safe.make_secret(name, value), injectAs="body", injectKey="key")

        assert safe.reveal(route)["value"] == value.encode()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"secretId": NOBODY}, "secret_of_route_fixed"),
        ({"priority": 1, "color": "red"}, "unknown_route_field"),
        ({"host_pattern": "x.example.com"}, "unknown_route_field"),
        ({"priority": "1"}, "invalid_route"),
        ({"injectFormat": "nothing in it"}, "invalid_route"),
        ({"injectKey": "host"}, "invalid_route"),
        ({"injectKey": "cookie"}, "invalid_route"),
        ({"hostPattern": "*.com"}, "invalid_route"),
    ],
)
def test_a_change_that_no_route_may_have_is_refused_and_changes_nothing(
    safe: Safe, changes: dict[str, Any], code: str
) -> None:
    assert code_of(safe.ask("ChangeCredentialRoute", {"route": safe.route, "changes": changes})) == ("BadOrder", code)

    assert safe.reveal()["fields"] == DEFAULTS | HOST | FORMAT


@pytest.mark.parametrize("fields", [{"hostPattern": "*"}, {"injectKey": "cookie"}, {"injectKey": "content-length"}])
def test_the_signer_itself_refuses_routes_that_no_api_would_send(safe: Safe, fields: dict[str, Any]) -> None:
    outcome = safe.ask("CreateCredentialRoute", {"secret": safe.secret, "fields": HOST | fields})

    assert code_of(outcome) == ("BadOrder", "invalid_route")
    assert outcome["context"]["fields"] == list(fields)


def test_a_switch_allows_patterns_and_once_off_binds_only_new_routes(safe: Safe, apart: Service) -> None:
    on = {"SERVICE_ALLOW_BROAD_SECRET_ROUTES": "true", "SERVICE_ALLOW_COOKIE_INJECTION": "true"}
    with partner_of(apart, **on) as open_handed:
        broad = {"hostPattern": "*", "injectKey": "cookie"}
        body = {"secret": safe.secret, "fields": HOST | broad}
        route = done_as_tenant(open_handed, safe.tenant.key, "CreateCredentialRoute", body)["id"]

    assert safe.do("ChangeCredentialRoute", route=route, changes={"priority": 9})["hostPattern"] == "*"
    assert safe.reveal(route)["fields"].items() >= broad.items()
    for again in ({"hostPattern": "*.com"}, {"injectKey": "Cookie"}):
        outcome = safe.ask("ChangeCredentialRoute", {"route": route, "changes": again})
        assert code_of(outcome) == ("BadOrder", "invalid_route")


def test_a_value_that_would_not_stay_in_a_header_line_is_refused_whichever_comes_second(safe: Safe) -> None:
    unfit = ("BadOrder", "value_not_for_header")
    lines = safe.make_secret("lines", "a\r\nb")

    assert code_of(safe.ask("CreateCredentialRoute", {"secret": lines, "fields": HOST})) == unfit
    query = safe.make_route(lines, injectAs="query", injectKey="key")
    changes = {"injectAs": "header", "injectKey": "x-key"}
    assert code_of(safe.ask("ChangeCredentialRoute", {"route": query, "changes": changes})) == unfit
    rotation = {"secret": safe.secret, "value": "a\nb", "rotate": True}
    assert code_of(safe.ask("RotateSecret", rotation)) == unfit
    assert safe.reveal()["secret_version"] == 1
    safe.do("DeleteCredentialRoute", route=safe.route)
    assert safe.do("RotateSecret", **rotation)["version"] == 2


async def test_a_tenant_has_at_most_ten_thousand_secrets_and_routes(safe: Safe, apart: Service) -> None:
    async with owner_of(apart.database) as owner:
        await owner.execute(
            "INSERT INTO secrets (tenant_id, id, name, version, created_at) "
            "SELECT $1, gen_random_uuid(), 'n' || n, 1, now() FROM generate_series(1, 9999) n",
            safe.tenant.id,
        )
        await owner.execute(
            "INSERT INTO credential_routes SELECT tenant_id, gen_random_uuid(), secret_id, fields, priority, mac, "
            "created_at FROM credential_routes, generate_series(1, 9999) WHERE tenant_id = $1",
            safe.tenant.id,
        )

    assert code_of(safe.ask("CreateSecret", {"name": "one more", "value": "v"})) == ("Conflict", "quota_exceeded")
    assert code_of(safe.ask("CreateCredentialRoute", {"secret": safe.secret, "fields": HOST})) == (
        "Conflict",
        "quota_exceeded",
    )
    assert safe.reveal()["value"] == VALUE.encode()


def with_key(key: bytes, said: bytes = b"f") -> dict[str, Any]:
    return {"idempotency": {"route": "POST /secrets", "key_hash": key, "fingerprint": said}}


def test_the_same_request_again_gets_the_same_metadata_and_makes_nothing_twice(safe: Safe) -> None:
    proof = {"kind": "tenant_key", "value": safe.tenant.key}
    acts: dict[str, dict[str, Any]] = {
        "CreateSecret": {"name": "once", "value": VALUE},
        "RotateSecret": {"secret": safe.secret, "value": "second", "rotate": True},
        "CreateCredentialRoute": {"secret": safe.secret, "fields": HOST},
        "ChangeCredentialRoute": {"route": safe.route, "changes": {"priority": 5}},
        "DeleteCredentialRoute": {"route": safe.route},
        "DeleteSecret": {"secret": safe.secret},
    }
    for name, body in acts.items():
        with greet(safe.service) as wire:
            first, again = (wire.reply(name, body, proof, **with_key(name.encode())) for _ in range(2))
            other = wire.ask(name, body, proof, **with_key(name.encode(), b"other"))

        assert first["outcome"]["type"] == "Done", first
        assert again["outcome"] == first["outcome"]
        assert (first.get("replayed", False), again.get("replayed", False)) == (False, True)
        assert code_of(other) == ("Conflict", "idempotency_mismatch")


def test_many_at_once_make_one_secret_of_a_name_and_one_version_after_another(safe: Safe) -> None:
    body = {"secret": safe.secret, "value": "v", "rotate": True}
    with ThreadPoolExecutor(12) as pool:
        made = list(pool.map(lambda n: safe.ask("CreateSecret", {"name": "race", "value": str(n)}), range(12)))
        twins = list(
            pool.map(lambda n: safe.ask("CreateSecret", {"name": "twins", "value": "v"}, **with_key(b"k")), range(12))
        )
        rotated = list(pool.map(lambda n: safe.ask("RotateSecret", body), range(12)))

    assert sorted(code_of(outcome) for outcome in made) == [("Conflict", "secret_name_taken")] * 11 + [("Done", "")]
    assert len({outcome["data"]["id"] for outcome in twins}) == 1
    assert sorted(outcome["data"]["version"] for outcome in rotated) == list(range(2, 14))


def test_changes_through_two_signers_at_once_are_all_kept_or_refused_plainly(safe: Safe, apart: Service) -> None:
    names = ["priority", "pathPattern", "method", "injectFormat"]
    changes = {"priority": 4, "pathPattern": "/v1/*", "method": "POST", "injectFormat": "Token {value}"}
    with partner_of(apart) as partner, ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(
                ask_as_tenant,
                service,
                safe.tenant.key,
                "ChangeCredentialRoute",
                {"route": safe.route, "changes": {name: changes[name]}},
            )
            for name, service in zip(names, (apart, partner, apart, partner), strict=True)
        ]
        outcomes = [done.result() for done in asked]

    kept = {name: changes[name] for name, outcome in zip(names, outcomes, strict=True) if outcome["type"] == "Done"}
    assert {code_of(outcome) for outcome in outcomes} <= {("Done", ""), ("Conflict", "credentials_moving")}
    assert kept
    assert safe.reveal()["fields"] == DEFAULTS | HOST | FORMAT | kept


async def test_a_header_route_that_comes_between_looking_and_rotating_is_seen(safe: Safe, apart: Service) -> None:
    # What the signer would send that looked before the route was there.
    arguments = (safe.tenant.id, safe.secret, 2, 1, b"", False, datetime.now(UTC), "secret.rotated")
    signer = await asyncpg.connect(apart.database.urls["signer"])
    try:
        result = await signer.fetchval(
            "SELECT rotate_secret($1, NULL, NULL, $2, $3, $4, $5, $6, $7, $8)",
            *arguments,
        )
    finally:
        await signer.close()

    assert result == "stale"
    assert safe.reveal()["secret_version"] == 1


def test_a_revoked_key_leaves_nothing_behind(safe: Safe, apart: Service) -> None:
    asyncio.run(tamper(apart, "UPDATE tenant_keys SET revoked_at = now() WHERE tenant_id = {t}", t=safe.tenant.id))

    outcome = safe.ask("RotateSecret", {"secret": safe.secret, "value": "v", "rotate": True})

    assert code_of(outcome)[0] == "BadProof"
    assert safe.reveal()["secret_version"] == 1


async def test_no_table_and_no_log_has_a_value_in_any_spelling(safe: Safe, apart: Service) -> None:
    safe.rotate(VALUE + "-2")
    safe.ask("CreateSecret", {"name": "openai", "value": VALUE})
    safe.ask("CreateSecret", {"name": "late", "value": VALUE, "expires_at": ahead(seconds=-1)})
    safe.ask("RotateSecret", {"secret": safe.secret, "value": VALUE + "\n", "rotate": True})
    safe.ask("CreateSecret", {"name": "keyed", "value": VALUE}, **with_key(b"k"))
    assert safe.reveal()["value"] == (VALUE + "-2").encode()
    spelled = [
        VALUE.encode(),
        base64.b64encode(VALUE.encode())[:-4],
        quote(VALUE).encode(),
        VALUE.encode().hex().encode(),
    ]

    async with owner_of(apart.database) as owner:
        names = await owner.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        stored = {
            row["relname"]: "\n".join(
                str(bytes(cell)) if isinstance(cell, bytes) else str(cell)
                for line in await owner.fetch(f"SELECT t::text, t.* FROM {row['relname']} t")
                for cell in line
            ).encode()
            for row in names
        }

    assert len(stored["sealed"]) > 100
    assert {table for table, rows in stored.items() for one in spelled if one in rows} == set()
    assert [one for one in spelled if one in apart.logs().encode()] == []


async def test_a_rotated_or_deleted_value_is_destroyed(safe: Safe, apart: Service) -> None:
    async with owner_of(apart.database) as owner:
        query = "SELECT blob FROM sealed WHERE owner = $1"
        first = await owner.fetchval(query, safe.secret)
        safe.rotate("second")
        second = await owner.fetch(query, safe.secret)
        safe.do("DeleteSecret", secret=safe.secret)
        third = await owner.fetch(query, safe.secret)

    assert [row["blob"] == first for row in second] == [False]
    assert third == []


async def test_every_change_leaves_one_row_that_only_the_signer_can_write(safe: Safe, apart: Service) -> None:
    safe.rotate("second")
    safe.do("RotateSecret", secret=safe.secret, value="third", rotate=False)
    safe.do("ChangeCredentialRoute", route=safe.route, changes={"priority": 1, "enabled": False})
    safe.do("DeleteSecret", secret=safe.secret)
    safe.do("DeleteCredentialRoute", route=safe.route)

    async with owner_of(apart.database) as owner:
        rows = await owner.fetch(
            "SELECT created_at, action, resource_type, resource_id, written_by, actor_type, request_id, metadata "
            "FROM audit WHERE tenant_id = $1 AND action ~ '^(secret|credential_route)' ORDER BY seq",
            safe.tenant.id,
        )
        version = await owner.fetchval("SELECT version FROM credential_heads WHERE tenant_id = $1", safe.tenant.id)

    assert [(row["action"], row["resource_type"], row["resource_id"]) for row in rows] == [
        ("secret.created", "secret", safe.secret),
        ("credential_route.created", "credential_route", safe.route),
        ("secret.rotated", "secret", safe.secret),
        ("secret.updated", "secret", safe.secret),
        ("credential_route.changed", "credential_route", safe.route),
        ("secret.deleted", "secret", safe.secret),
        ("credential_route.deleted", "credential_route", safe.route),
    ]
    told = {(row["written_by"], row["actor_type"], row["request_id"]) for row in rows}
    assert told == {("custody_signer", "system", "test")}
    assert msgspec.json.decode(rows[4]["metadata"]) == {
        "secretId": safe.secret,
        "hostPattern": "api.example.com",
        "changed": ["enabled", "priority"],
    }
    # One step each, and none for a reveal; the first is the microsecond it was made in.
    first = version - (len(rows) - 1)
    assert abs(first / 1_000_000 - rows[0]["created_at"].timestamp()) < 1


async def test_a_deleted_tenant_takes_everything_along(safe: Safe, apart: Service) -> None:
    with greet(apart) as wire:
        proof = {"kind": "platform_key", "value": apart.platform_key}
        assert wire.ask("DeleteTenant", {"id": safe.tenant.id}, proof)["type"] == "Done"

    async with owner_of(apart.database) as owner:
        left = [
            await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", safe.tenant.id)
            for table in ("secrets", "credential_routes", "credential_heads", "sealed")
        ]
    assert left == [0, 0, 0, 0]
