"""`custody platform-keys`: made, listed and revoked on this machine; each key does what its scopes say."""

import subprocess
import sys
from collections.abc import Iterator

import asyncpg
import httpx
import pytest

from custody.kit import tokens
from ops import places
from tests.fixtures.callers import Client
from tests.fixtures.deployments import database_apart, deploy, partner_of
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.processes import PROJECT


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """A database of this file's own: platform keys belong to no tenant."""
    return database_apart(postgres_home, f"{worker_id}_platform_keys")


@pytest.fixture(scope="module")
def alone(apart: Database) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deploy(apart) as service:
        yield service


def custody(service: Service, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `custody platform-keys`."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "ops", "platform-keys", *words],
        cwd="/",
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(service.home)},
        timeout=30,
        check=False,
    )


def make(service: Service, *scopes: str, name: str = "a test") -> tuple[str, str]:
    """The id and the key that the command shows."""
    ended = custody(service, "create", "--name", name, *(word for scope in scopes for word in ("--scope", scope)))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    said = dict(line.split() for line in ended.stdout.splitlines()[1:3])
    return said["id"], said["key"]


def call(service: Service, key: str, method: str, path: str, body: object = None) -> httpx.Response:
    with Client(base_url=service.url, headers={"X-Service-Platform-Key": key}, timeout=30) as client:
        return client.request(method, path, json=body)


def test_a_key_does_what_its_scopes_say_and_nothing_else(alone: Service) -> None:
    _, key = make(alone, "platform:tenant:read")

    reads = call(alone, key, "GET", "/platform/tenants")
    writes = call(alone, key, "POST", "/platform/tenants", {"id": "scoped", "name": "x"})

    assert (reads.status_code, writes.status_code) == (200, 403)
    assert writes.json()["data"]["code"] == "missing_scope"


def test_two_scopes_are_both_there(alone: Service) -> None:
    _, key = make(alone, "platform:tenant:write", "platform:tenant:read", "platform:tenant:read")

    assert call(alone, key, "POST", "/platform/tenants", {"id": "both", "name": "x"}).status_code == 201
    assert call(alone, key, "GET", "/platform/tenants").status_code == 200
    assert call(alone, key, "GET", "/platform/tenants/both/members").status_code == 403


def test_the_signer_looks_at_scopes_itself(alone: Service) -> None:
    _, key = make(alone, "platform:tenant:read")

    with greet(alone) as wire:
        outcome = wire.ask("CreateTenant", {"id": "x", "name": "x"}, {"kind": "platform_key", "value": key})

    assert (outcome["kind"], outcome["code"]) == ("Forbidden", "wrong_kind")


def test_a_revoked_key_ends_at_once(alone: Service) -> None:
    key_id, key = make(alone, "platform:tenant:read")
    assert call(alone, key, "GET", "/platform/stats").status_code == 200

    ended = custody(alone, "revoke", key_id)

    assert (ended.returncode, key_id in ended.stdout) == (0, True)
    assert call(alone, key, "GET", "/platform/stats").status_code == 401
    again = custody(alone, "revoke", key_id)
    assert (again.returncode, again.stdout) == (1, "")


def test_the_list_says_what_there_is_but_no_key(alone: Service) -> None:
    key_id, key = make(alone, "platform:gas-spend:read", name="Reports of the treasury")

    listed = custody(alone, "list").stdout

    (line,) = [line for line in listed.splitlines() if key_id in line]
    assert "Reports of the treasury" in line
    assert "platform:gas-spend:read" in line
    assert "the key file: everything" in listed
    assert key not in listed
    assert alone.platform_key not in listed


def test_an_unknown_scope_is_refused_with_those_there_are(alone: Service) -> None:
    ended = custody(alone, "create", "--name", "x", "--scope", "platform:everything")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "platform:everything" in ended.stderr
    assert "platform:tenant-user:read" in ended.stderr


@pytest.mark.parametrize("words", [(), ("create",), ("create", "--name", "x"), ("revoke",), ("shred", "x")])
def test_an_incomplete_command_says_what_is_missing(alone: Service, words: tuple[str, ...]) -> None:
    ended = custody(alone, *words)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "usage:" in ended.stderr


@pytest.mark.parametrize("word", ["not-an-id", "pk_sXSGpf6h0", "-"])
def test_a_malformed_id_is_refused_with_where_ids_are(alone: Service, word: str) -> None:
    ended = custody(alone, "revoke", word)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"custody: {word} is not an id of a platform key; `custody platform-keys list` shows the ids\n"
    )


def test_only_the_unscoped_key_makes_ends_and_lists_keys(alone: Service) -> None:
    key_id, key = make(alone, "platform:tenant:read", "platform:tenant:write")
    proof = {"kind": "platform_key", "value": key}

    with greet(alone, "operator") as wire:
        outcomes = [
            wire.ask("CreatePlatformKey", {"name": "x", "scopes": ["platform:tenant:read"]}, proof),
            wire.ask("RevokePlatformKey", {"key": key_id}, proof),
            wire.ask("ListPlatformKeys", {}, proof),
        ]

    assert {(one["kind"], one["code"]) for one in outcomes} == {("Forbidden", "only_unscoped")}


def test_the_api_cannot_ask_for_keys(alone: Service) -> None:
    proof = {"kind": "platform_key", "value": alone.platform_key}

    with greet(alone, "api") as wire:
        outcome = wire.ask("CreatePlatformKey", {"name": "x", "scopes": ["platform:tenant:read"]}, proof)

    assert outcome["code"] == "message_not_allowed"


async def test_a_key_is_kept_only_as_its_hash_and_told_in_the_operators_log(alone: Service, apart: Database) -> None:
    key_id, key = make(alone, "platform:user:read")

    connection = await asyncpg.connect(apart.owner_url)
    row = await connection.fetchrow("SELECT * FROM platform_keys WHERE id = $1", key_id)
    told = await connection.fetch("SELECT action, metadata FROM audit WHERE resource_id = $1", key_id)
    await connection.close()

    assert row["key_hash"] == tokens.digest(key)
    assert not any(key in str(value) for value in row.values())
    assert [one["action"] for one in told] == ["platform_key.created"]
    assert key not in told[0]["metadata"]


async def test_more_scopes_in_the_database_are_not_believed(alone: Service, apart: Database) -> None:
    _, key = make(alone, "platform:tenant:read")

    connection = await asyncpg.connect(apart.owner_url)
    await connection.execute("UPDATE platform_keys SET scopes = NULL WHERE key_hash = $1", tokens.digest(key))
    await connection.close()

    assert call(alone, key, "POST", "/platform/tenants", {"id": "forged", "name": "x"}).status_code == 401


def test_where_scopes_are_off_a_key_does_everything_but_make_keys(alone: Service) -> None:
    _, key = make(alone, "platform:gas-spend:read")
    with partner_of(alone, SERVICE_SCOPED_PLATFORM_KEYS="false") as lax:
        answer = call(lax, key, "POST", "/platform/tenants", {"id": "unscoped", "name": "x"})
        with greet(lax, "operator") as wire:
            outcome = wire.ask("ListPlatformKeys", {}, {"kind": "platform_key", "value": key})

    assert answer.status_code == 201, answer.text
    assert outcome["code"] == "only_unscoped"


def test_without_a_signer_the_command_says_so(alone: Service, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("empty")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "ops", "platform-keys", "list"],
        cwd="/",
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home)},
        timeout=30,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "platform.key" in ended.stderr
