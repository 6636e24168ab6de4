"""Revealing a secret: to the proxy, for a living agent of the same tenant, as long as nobody tampered."""

from collections.abc import Iterator
from typing import Any

import pytest

from custody.worker import peers
from ops import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.safes import FORMAT, HOST, NOBODY, VALUE, Safe, ahead, code_of, tamper, token_of
from tests.fixtures.server import Service


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_reveal")) as service:
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


def test_nothing_of_another_tenant_can_be_named(safe: Safe, foreign: Safe) -> None:
    theirs = {"secret": foreign.secret}
    absent = {
        code_of(safe.ask("RotateSecret", theirs | {"value": "v", "rotate": True})),
        code_of(safe.ask("DeleteSecret", theirs)),
        code_of(safe.ask("CreateCredentialRoute", theirs | {"fields": HOST})),
    }
    route = {"route": foreign.route}
    nowhere = {
        code_of(safe.ask("ChangeCredentialRoute", route | {"changes": {"enabled": False}})),
        code_of(safe.ask("DeleteCredentialRoute", route)),
        code_of(safe.reveal(foreign.route)),
        code_of(safe.reveal(NOBODY)),
    }

    assert absent == {("NotFound", "secret_absent")}
    assert nowhere == {("NotFound", "credential_route_absent")}
    assert foreign.reveal()["value"] == VALUE.encode()


def test_a_tenants_key_and_a_broken_token_reveal_nothing(safe: Safe) -> None:
    token = token_of(safe.agent)

    assert code_of(safe.reveal(token=safe.tenant.key, kind="tenant_key"))[0] == "Forbidden"
    assert code_of(safe.reveal(token=token[:-8] + token[-8:][::-1]))[0] == "BadProof"
    assert code_of(safe.reveal(token=safe.tenant.key))[0] == "BadProof"


async def test_an_expired_token_reveals_nothing(safe: Safe) -> None:
    token = safe.do("MintAgentToken", agent=safe.agent.id, ttl_seconds=1, expires_in="1s")["token"]

    assert await soon(lambda: code_of(safe.reveal(token=token)), ("BadProof", "bad_token"))
    assert safe.reveal()["type"] == "Revealed"


def test_a_revoked_token_reveals_nothing(safe: Safe) -> None:
    safe.do("RevokeAgentTokens", agent=safe.agent.id)

    assert code_of(safe.reveal()) == ("BadProof", "token_revoked")


def test_a_token_of_a_deleted_or_recreated_agent_reveals_nothing(safe: Safe) -> None:
    safe.do("DeleteAgent", agent=safe.agent.id)
    deleted = safe.reveal()
    anew = safe.tenant.agent(agent_id=safe.agent.id)

    assert code_of(deleted) == ("BadProof", "bad_proof")
    assert code_of(safe.reveal()) == ("BadProof", "token_revoked")
    assert safe.reveal(token=token_of(anew))["type"] == "Revealed"


@pytest.mark.parametrize("what", ["agents", "tenants"])
async def test_a_frozen_agent_or_tenant_reveals_nothing(safe: Safe, apart: Service, what: str) -> None:
    frozen = {"agents": safe.agent.id, "tenants": safe.tenant.id}[what]
    await tamper(apart, f"UPDATE {what} SET frozen_at = now() WHERE id = {{frozen}}", frozen=frozen)

    assert code_of(safe.reveal()) == ("Frozen", "frozen")


@pytest.mark.parametrize(
    ("uid", "sign", "reveal"),
    [
        (64714, set(), {"proxy"}),
        (64712, {"api"}, set()),
        (64713, {"scheduler"}, set()),
        (0, {"operator"}, set()),
        (64711, {"operator"}, set()),
        (1000, set(), set()),
    ],
)
def test_each_process_has_one_socket_and_a_stranger_none(uid: int, sign: set[str], reveal: set[str]) -> None:
    uids = {name: places.UIDS[name] for name in ("api", "scheduler", "proxy")}

    assert peers.names_of(uid, peers.SIGN_SOCKET, uids, places.UIDS["signer"]) == sign
    assert peers.names_of(uid, peers.REVEAL_SOCKET, uids, places.UIDS["signer"]) == reveal


_ROUTE = "UPDATE credential_routes SET %s WHERE id = {route}::uuid"
_FROM = "UPDATE credential_routes r SET %s FROM credential_routes o WHERE r.id = {route}::uuid AND o.id = {%s}::uuid"
_SECRET = "UPDATE secrets SET %s WHERE id = {secret}::uuid"
_VALUE = "UPDATE sealed SET blob = %s WHERE owner = {secret}"
_COPY = (
    "UPDATE sealed s SET blob = o.blob FROM sealed o WHERE s.owner = {secret} AND o.owner = {%s} AND o.purpose = '%s'"
)
TAMPERED = {
    "host changed": _ROUTE % "fields = replace(fields, 'api.', 'evil.')",
    "key changed": _ROUTE % "fields = replace(fields, 'authorization', 'referer')",
    "text spelled otherwise": _ROUTE % "fields = replace(fields, ',', ', ')",
    "text no JSON": _ROUTE % "fields = ''",
    "fields of another route": _FROM % ("fields = o.fields", "other_route"),
    "fields and MAC of another route": _FROM % ("fields = o.fields, mac = o.mac", "other_route"),
    "MAC of another tenant's equal route": _FROM % ("mac = o.mac", "foreign_route"),
    "MAC of another secret's equal route": _FROM % ("mac = o.mac", "twin_route"),
    "MAC flipped": _ROUTE % "mac = set_byte(mac, 20, get_byte(mac, 20) # 1)",
    "MAC cut short": _ROUTE % "mac = substr(mac, 1, 4)",
    "MAC empty": _ROUTE % "mac = ''",
    "MAC of a key that never was": _ROUTE % "mac = set_byte(mac, 3, 9)",
    "pointed at another secret": _ROUTE % "secret_id = {other_secret}::uuid",
    "expiry set": _SECRET % "expires_at = now() + interval '1 day'",
    "version raised": _SECRET % "version = version + 1",
    "value of another secret": _COPY % ("other_secret", "secret"),
    "value of another tenant's secret": _COPY % ("foreign_secret", "secret"),
    "a wallet's key as value": _COPY % ("agent", "evm"),
    "value flipped": _VALUE % "set_byte(blob, 18, get_byte(blob, 18) # 1)",
    "value cut short": _VALUE % "substr(blob, 1, 10)",
    "value deleted": "DELETE FROM sealed WHERE owner = {secret}",
}


@pytest.mark.parametrize("what", TAMPERED)
async def test_a_tampered_row_reveals_nothing(apart: Service, safe: Safe, foreign: Safe, what: str) -> None:
    other = safe.make_secret("other", "another value")
    names = {
        "route": safe.route,
        "secret": safe.secret,
        "other_secret": other,
        "agent": safe.agent.id,
        "other_route": safe.make_route(safe.secret, hostPattern="other.example.com"),
        "twin_route": safe.make_route(other, **FORMAT),
        "foreign_route": foreign.route,
        "foreign_secret": foreign.secret,
    }
    assert safe.reveal()["type"] == "Revealed"
    log = apart.home / "log" / "signer.log"
    logged = log.stat().st_size

    await tamper(apart, TAMPERED[what], **names)

    assert code_of(safe.reveal()) == ("Unavailable", "sealed_value_tampered")
    assert b'"level":"error"' in log.read_bytes()[logged:]


@pytest.mark.parametrize("change", ["expires_at + interval '1 day'", "expires_at + interval '1 millisecond'", "NULL"])
async def test_an_expiry_that_was_moved_reveals_nothing(apart: Service, safe: Safe, change: str) -> None:
    secret = safe.make_secret("short", expires_at=ahead(days=1))
    route = safe.make_route(secret)
    assert safe.reveal(route)["type"] == "Revealed"

    await tamper(apart, f"UPDATE secrets SET expires_at = {change} WHERE id = {{secret}}::uuid", secret=secret)

    assert code_of(safe.reveal(route)) == ("Unavailable", "sealed_value_tampered")


async def test_a_version_put_back_or_a_deletion_undone_reveals_nothing(apart: Service, safe: Safe) -> None:
    async with owner_of(apart.database) as owner:
        first = await owner.fetchval("SELECT blob FROM sealed WHERE owner = $1", safe.secret)
        safe.rotate("second")
        await owner.execute("UPDATE sealed SET blob = $2 WHERE owner = $1", safe.secret, first)
        put_back = safe.reveal()
        safe.do("DeleteSecret", secret=safe.secret)
        await owner.execute("UPDATE secrets SET deleted_at = NULL WHERE id = $1", safe.secret)

    assert code_of(put_back) == ("Unavailable", "sealed_value_tampered")
    assert code_of(safe.reveal()) == ("Unavailable", "sealed_value_tampered")


async def test_a_route_that_was_disabled_cannot_be_enabled_behind_the_signers_back(apart: Service, safe: Safe) -> None:
    safe.do("ChangeCredentialRoute", route=safe.route, changes={"enabled": False})
    statement = "UPDATE credential_routes SET fields = replace(fields, 'false', 'true') WHERE id = {route}::uuid"
    await tamper(apart, statement, route=safe.route)

    assert code_of(safe.reveal()) == ("Unavailable", "sealed_value_tampered")


@pytest.mark.parametrize("changes", [{}, {"priority": 1}, {"hostPattern": "api.example.com"}])
async def test_changing_a_route_that_was_tampered_with_does_not_make_it_good(
    apart: Service, safe: Safe, changes: dict[str, Any]
) -> None:
    await tamper(apart, TAMPERED["key changed"], route=safe.route)

    outcome = safe.ask("ChangeCredentialRoute", {"route": safe.route, "changes": changes})

    assert code_of(outcome) == ("Unavailable", "sealed_value_tampered")
    assert code_of(safe.reveal()) == ("Unavailable", "sealed_value_tampered")
    # The way out.
    assert safe.do("DeleteCredentialRoute", route=safe.route) == {"deleted": safe.route}


async def test_a_route_copied_to_another_tenant_reveals_nothing(apart: Service, safe: Safe, foreign: Safe) -> None:
    copy = "INSERT INTO credential_routes SELECT {thief}, id, {own}::uuid, fields, priority, mac, created_at "
    await tamper(
        apart,
        copy + "FROM credential_routes WHERE id = {route}::uuid",
        thief=foreign.tenant.id,
        own=foreign.secret,
        route=safe.route,
    )

    assert code_of(foreign.reveal(safe.route)) == ("Unavailable", "sealed_value_tampered")
