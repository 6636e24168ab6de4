"""`custody backup` and `restore`: what was there is there again and opens, and an older state is noticed (P7)."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec
import pytest

from ops import places
from tests.audit.sealed import ODD_ROW, as_before_there_were_bounds
from tests.fixtures.callers import new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.keepsakes import Keepsakes, custody, keepsakes
from tests.fixtures.people import member
from tests.fixtures.postgres import in_database
from tests.fixtures.safes import Safe
from tests.fixtures.server import Service
from tests.fixtures.signers import new_signer
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

MANIFEST = "manifest.json"


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose database this file may empty."""
    with deploy(database_apart(postgres_home, f"{worker_id}_backup")) as service:
        yield service


@pytest.fixture(scope="module")
def one_of_each(apart: Service) -> Iterator[Keepsakes]:
    """One of everything that is sealed."""
    with keepsakes(apart) as found:
        yield found


@pytest.fixture(scope="module")
def copy(apart: Service, one_of_each: Keepsakes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of that moment, with an audit row that could not be written any more."""
    odd = ODD_ROW.format(name="odd", metadata="'no JSON'", agent="NULL", time="'infinity'", rows=1)
    asyncio.run(as_before_there_were_bounds(apart.database, one_of_each.tenant, odd))
    folder = tmp_path_factory.mktemp("copies") / "first"
    ended = custody(apart, "backup", str(folder))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    assert "which is not in it" in ended.stdout
    return folder


def test_a_backup_is_private_and_has_no_master_key(apart: Service, copy: Path) -> None:
    keys = re.findall(r"[0-9a-f]{64}", (apart.home / "master.key").read_text())
    files = sorted(copy.iterdir())

    assert [file.name for file in files] == ["database.dump", MANIFEST]
    assert [oct(part.stat().st_mode & 0o777) for part in (copy, *files)] == ["0o700", "0o600", "0o600"]
    for file in files:
        content = file.read_bytes()
        assert not any(key.encode() in content or bytes.fromhex(key) in content for key in keys)
        assert apart.platform_key.encode() not in content
    assert list(copy.parent.iterdir()) == [copy]


def test_a_backup_is_never_written_over_another(apart: Service, copy: Path) -> None:
    before = (copy / MANIFEST).read_bytes()

    ended = custody(apart, "backup", str(copy))

    assert (ended.returncode, "already exists" in ended.stderr) == (1, True)
    assert (copy / MANIFEST).read_bytes() == before


def test_nothing_is_restored_into_a_database_that_is_in_use_or_not_empty(
    apart: Service, postgres_home: places.Home, worker_id: str, copy: Path
) -> None:
    occupied = database_apart(postgres_home, f"{worker_id}_occupied")

    in_use = custody(apart, "restore", str(copy))
    filled = custody(apart, "restore", str(copy), SERVICE_DATABASE_URL=occupied.owner_url)

    assert (in_use.returncode, filled.returncode) == (1, 1)
    assert "stop them first" in in_use.stderr
    assert "is not empty" in filled.stderr


def test_a_backup_that_was_changed_or_cut_short_is_refused(apart: Service, copy: Path, tmp_path: Path) -> None:
    for name, change in (("flipped", _flip), ("cut", lambda dump: dump[:-100])):
        other = Path(shutil.copytree(copy, tmp_path / name))
        (other / "database.dump").write_bytes(change((copy / "database.dump").read_bytes()))

        ended = custody(apart, "restore", str(other))

        assert (ended.returncode, "truncated or changed" in ended.stderr) == (1, True), ended.stderr


def test_a_backup_of_a_newer_version_is_refused(apart: Service, copy: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(copy, tmp_path / "newer"))
    said = msgspec.json.decode((other / MANIFEST).read_bytes())
    said["migrations"].append("9999_later")
    (other / MANIFEST).write_bytes(msgspec.json.encode(said))

    ended = custody(apart, "restore", str(other))

    assert (ended.returncode, "newer version" in ended.stderr) == (1, True)


def test_a_backup_from_before_the_squash_is_called_old(apart: Service, copy: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(copy, tmp_path / "older"))
    said = msgspec.json.decode((other / MANIFEST).read_bytes())
    said["migrations"] = ["0001_foundation", "0012_rotation"]
    (other / MANIFEST).write_bytes(msgspec.json.encode(said))

    ended = custody(apart, "restore", str(other))

    assert (ended.returncode, "this backup was made before 2026-11-23" in ended.stderr) == (1, True)
    assert "newer" not in ended.stderr


async def _odd_rows(service: Service) -> int:
    async with owner_of(service.database) as owner:
        return await owner.fetchval("SELECT count(*) FROM audit WHERE created_at = 'infinity'")


def test_an_older_state_is_noticed_until_it_is_accepted(apart: Service, one_of_each: Keepsakes, copy: Path) -> None:
    agent = one_of_each.agent
    one_of_each.tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", maxPerDay="1")])
    other = one_of_each.tenant.ok("POST", "/agents", {"id": "later", "name": "Later"})
    signer = f"/agents/{agent.id}/signers/{one_of_each.signer['id']}"
    one_of_each.owner.ok("PATCH", signer, {"status": "paused"})
    wipe(apart)

    restored = custody(apart, "restore", str(copy), "--verify")

    assert (restored.returncode, restored.stderr) == (0, ""), restored.stderr
    assert "every wallet's address matches" in restored.stdout
    assert "the rules or signers of 1 agents are older than this signer has seen" in restored.stdout
    apart.start("signer", "identity", "api")
    assert one_of_each.tenant.get(f"/agents/{other['id']}").status_code == 404
    refused = agent.sign(value=1)
    assert (refused.status_code, refused.json()["data"]["code"]) == (503, "policy_tampered")
    older = one_of_each.owner.patch(signer, json={"label": "older"})
    assert (older.status_code, older.json()["data"]["code"]) == (503, "authority_tampered")
    assert one_of_each.safe.agent.sign(value=1).status_code == 200
    assert asyncio.run(_odd_rows(apart)) == 1

    accepted = custody(apart, "restore", "--accept")

    assert accepted.returncode == 0, accepted.stderr
    assert f"{one_of_each.tenant.id}/{agent.id}" in accepted.stdout
    one_of_each.all_count()
    apart.kill("signer")
    apart.start("signer")
    assert agent.sign(value=1).status_code == 200


def test_functions_and_rows_belong_to_whom_they_did(apart: Service) -> None:
    """A restored database guards as the migrated one does: as P4 has it."""
    rows = asyncio.run(
        _ask(
            apart.database.owner_url,
            "SELECT proowner::regrole::text AS owner, count(*) FROM pg_proc "
            "WHERE pronamespace = 'public'::regnamespace AND prosecdef GROUP BY 1",
        )
    )
    guarded = asyncio.run(
        _ask(apart.database.owner_url, "SELECT relrowsecurity FROM pg_class WHERE relname = 'sealed'")
    )

    assert [row["owner"] for row in rows] == ["custody_definer"]
    assert guarded[0]["relrowsecurity"]


def test_a_value_that_does_not_open_is_reported(apart: Service, one_of_each: Keepsakes) -> None:
    tampered = "UPDATE sealed SET blob = set_byte(blob, 30, get_byte(blob, 30) # 1) WHERE owner_kind = 'agent'"
    asyncio.run(_ask(apart.database.owner_url, tampered))

    ended = custody(apart, "restore", "--verify")

    asyncio.run(_ask(apart.database.owner_url, tampered))
    assert ended.returncode == 1
    assert re.search(r"WRONG  sealed values: \d+ hold, \d+ do not", ended.stdout)
    assert custody(apart, "restore", "--verify").returncode == 0


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("DELETE FROM sealed WHERE owner_kind = 'agent' AND tenant_id = '{tenant}'", "wallets without their keys"),
        ("DELETE FROM policy_heads WHERE tenant_id = '{tenant}'", "agents whose rules have no seal"),
        ("DELETE FROM sealed WHERE owner_kind = 'secret' AND tenant_id = '{tenant}'", "secrets without their value"),
        ("DELETE FROM authority_heads WHERE tenant_id = '{tenant}'", "agents whose signers have no seal"),
        (
            "DELETE FROM sealed WHERE owner_kind = 'signer' AND tenant_id = '{tenant}'",
            "signers without their credential",
        ),
    ],
    ids=["keys", "rules", "secrets", "signers", "credentials"],
)
def test_a_missing_row_is_reported(apart: Service, gone: str, said: str) -> None:
    with new_tenant(apart) as tenant, closing(member(apart, tenant, "owner", mfa=True)) as admin:
        new_signer(admin, Safe(apart, tenant).agent)
        asyncio.run(_ask(apart.database.owner_url, gone.format(tenant=tenant.id)))

        ended = custody(apart, "restore", "--verify")

    assert ended.returncode == 1, ended.stdout
    assert re.search(rf"WRONG  [12] {said}", ended.stdout)
    assert "Some values do NOT verify" in ended.stdout


def test_without_its_master_key_nothing_is_verified_and_none_is_made(apart: Service, tmp_path: Path) -> None:
    gone = tmp_path / "gone.key"

    ended = custody(apart, "restore", "--verify", SERVICE_MASTER_KEY_FILE=str(gone))

    assert (ended.returncode, "Restore the file from your backup" in ended.stderr) == (2, True)
    assert not gone.exists()


@pytest.mark.parametrize("words", [(), ("--accept", "--verify")])
def test_a_command_that_says_nothing_does_nothing(apart: Service, words: tuple[str, ...]) -> None:
    ended = custody(apart, "restore", *words)

    assert (ended.returncode, ended.stdout) == (2, "")


@pytest.mark.parametrize("words", [("backup", "copy"), ("restore", "--verify")], ids=" ".join)
def test_a_look_at_nothing_makes_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = without_database(tmp_path / "home", tmp_path, *words)

    assert ended.returncode != 0
    assert "no database in" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could change whose folder it is")
@pytest.mark.parametrize("words", [("backup", "copy"), ("restore", "--verify"), ("restore", "copy")], ids=" ".join)
def test_root_leaves_the_folder_to_whose_it_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    for folder in (home, home / "signer", home / "postgres"):
        folder.mkdir(mode=0o700)
        os.chown(folder, 1000, 1000)
    before = {path: (path.stat().st_uid, path.stat().st_mode) for path in (home, *home.iterdir())}

    ended = without_database(home, tmp_path, *words)

    assert "run this as that user" in ended.stderr
    assert {path: (path.stat().st_uid, path.stat().st_mode) for path in (home, *home.iterdir())} == before


def without_database(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home)}
    command = [sys.executable, "-P", "-m", "ops", *words]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=60, check=False)


def wipe(service: Service) -> None:
    """Stop everything and put an empty database in the place of this one."""
    service.stop()
    url = service.database.owner_url
    name = urlsplit(url).path.removeprefix("/")
    asyncio.run(
        _ask(in_database(url, "postgres"), f"DROP DATABASE {name}", f"CREATE DATABASE {name} TEMPLATE template0")
    )


async def _ask(url: str, *statements: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return [row for statement in statements for row in await connection.fetch(statement)]
    finally:
        await connection.close()


def _flip(dump: bytes) -> bytes:
    return dump[:-50] + bytes([dump[-50] ^ 1]) + dump[-49:]
