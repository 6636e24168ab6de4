"""Databases as earlier versions filled them are upgraded, equal a new one, and do their work. docs/recovery.md."""

import asyncio
import re
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
from ops.postgres import DATABASE
from ops.settings import PROCESSES
from tests.audit.sealed import seal, verify_export
from tests.fixtures.callers import Client
from tests.fixtures.deployments import deploy
from tests.fixtures.people import member
from tests.fixtures.postgres import Database, in_database
from tests.outside.processes import PROJECT
from tests.upgrades.kept import MASTER_KEY, facts_of, names, restore
from tests.upgrades.schemas import rows, schema

pytestmark = pytest.mark.long

KILLS = 10
# When each step was taken, and rows of migrations under numbers that Postgres does not give twice.
NOTES = ("tortoise_migrations", "retention")
NAMES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.+]+")


# What an hour holds and the sum of an agent's life does not.
NOT_IN_TOTALS = """
SELECT count(*) FROM spend s LEFT JOIN spend_totals t USING (tenant_id, agent_id, incarnation, asset)
 WHERE t.amount IS NULL OR t.amount < s.amount
"""


class Old(msgspec.Struct, frozen=True):
    """A database of an earlier version, and an installation of today beside it."""

    database: Database
    home: Path
    fresh_url: str

    def custody(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of this version, as its operator."""
        return self.run("ops", *words)

    def run(self, module: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of this version, with the operator's settings."""
        urls = {f"SERVICE_DATABASE_URL_{name.upper()}": url for name, url in self.database.urls.items()}
        given = {"SERVICE_HOME": str(self.home), "SERVICE_DATABASE_URL": self.database.owner_url}
        return subprocess.run(
            [sys.executable, "-P", "-m", module, *words],
            cwd="/",
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT), **given, **urls, **self.keys},
            timeout=300,
            check=False,
        )

    @property
    def keys(self) -> dict[str, str]:
        """The places of the keys with which it was made."""
        return {
            "SERVICE_MASTER_KEY_FILE": str(self.home / "kept-master.key"),
            "SERVICE_PLATFORM_KEY_FILE": str(self.home / "kept-platform.key"),
        }


@pytest.fixture
def empty(postgres_home: places.Home, worker_id: str, tmp_path: Path) -> Iterator[Old]:
    """An installation whose database is empty."""
    owner_url = postgres_home.file("db", "owner.url").read_text()
    name = f"kept_{worker_id}"
    home = tmp_path / "home"
    home.mkdir(mode=0o711)
    (home / "kept-master.key").write_text(MASTER_KEY)
    (home / "kept-master.key").chmod(0o600)
    asyncio.run(
        _ask(owner_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0")
    )
    urls = {process: postgres_home.file("db", f"{process}.url").read_text().strip() for process in PROCESSES}
    database = Database(in_database(owner_url, name), {p: in_database(url, name) for p, url in urls.items()})
    yield Old(database, home, in_database(owner_url, DATABASE))
    asyncio.run(_ask(owner_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.mark.parametrize("name", names())
def test_an_old_database_is_upgraded_and_does_its_work(empty: Old, name: str, tmp_path: Path) -> None:
    kept = facts_of(name)
    restore(name, empty.database.owner_url)

    ended = empty.custody("migrate")

    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    assert schema(empty.database.owner_url) == schema(empty.fresh_url)
    assert asyncio.run(_count(empty.database.owner_url, "SELECT count(*) FROM spend_totals")) > 0
    assert asyncio.run(_count(empty.database.owner_url, NOT_IN_TOTALS)) == 0
    platform = empty.home / "kept-platform.key"
    platform.write_text(f"{kept.platform_key}\n")
    platform.chmod(0o600)
    verified_all = empty.custody("restore", "--verify")
    assert verified_all.returncode == 0, verified_all.stdout + verified_all.stderr
    with deploy(empty.database, "signer", "identity", "api", **empty.keys) as service:
        (service.home / "platform.key").symlink_to(platform)
        with Client(base_url=service.url, headers={"X-Service-Key": kept.tenant_key}, timeout=60) as tenant:
            assert tenant.ok("GET", f"/approvals/{kept.waiting}")["status"] == "pending"
            approved = tenant.post(f"/approvals/{kept.waiting}/approve", json={})
            assert approved.status_code == 200, approved.text
            token = tenant.ok("POST", f"/agents/{kept.agent}/token", {})["token"]
        with Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as agent:
            order = {"to": kept.address, "value": "1", "broadcast": False}
            signed = agent.post(f"/vault/{kept.agent}/sign", json=order)
            assert signed.status_code == 200, signed.text
            # The rules of then hold.
            assert agent.post(f"/vault/{kept.agent}/sign", json=order | {"value": "70"}).status_code == 202
            refused = agent.post(f"/vault/{kept.agent}/sign", json=order | {"value": "1000001"})
            assert refused.status_code == 403, refused.text
        with Client(
            base_url=service.url, auth=(kept.app, kept.app_secret), headers={"X-Service-App-Id": kept.app}, timeout=60
        ) as app:
            assert app.get("/agents").status_code == 200
        with closing(member(service, kept.tenant, "owner", mfa=True)) as owner:
            seal(service)
            found = owner.get("/audit/export")
            assert found.status_code == 200, found.text
            keys = owner.get("/.well-known/jwks.json").content
        status, said = verify_export(tmp_path, found.content, keys)
        assert status == 0, said
        assert b"agent.created" in found.content


def test_nothing_is_lost_by_an_upgrade_that_is_killed(empty: Old) -> None:
    """The oldest one is what it was after a kill at each of ten places, and is upgraded then as if nothing had been."""
    name = names()[0]
    restore(name, empty.database.owner_url)
    url = empty.database.owner_url
    asyncio.run(_ask(empty.fresh_url, f"CREATE DATABASE {_name(url)}_whole TEMPLATE {_name(url)}"))
    whole = Old(_other(empty.database, f"{_name(url)}_whole"), empty.home, empty.fresh_url)
    ended = whole.run("tests.upgrades.dying", "0")
    assert ended.returncode == 0, ended.stderr
    commit = int(ended.stdout.splitlines()[-1])
    assert commit > 100
    before = schema(url), rows(url)

    for number in range(KILLS):
        place = 1 + number * (commit - 1) // (KILLS - 1)
        cut = ["cut"] if number % 2 else []
        ended = empty.run("tests.upgrades.dying", *cut, str(place))
        assert (ended.returncode, "Traceback" in ended.stderr) == (1 if cut else -9, False), ended.stderr
        assert not cut or "whole or not at all. Run it again" in ended.stderr, (place, ended.stderr)
        assert (schema(url), rows(url)) == before, place
    ended = empty.custody("migrate")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert schema(url) == schema(whole.database.owner_url) == schema(empty.fresh_url)
    upgraded, at_once = (
        _without_new_names(rows(one, without=NOTES), before[1]) for one in (url, whole.database.owner_url)
    )
    assert upgraded == at_once
    asyncio.run(_ask(empty.fresh_url, f"DROP DATABASE {_name(url)}_whole WITH (FORCE)"))


def test_an_old_backup_is_restored(empty: Old, tmp_path: Path) -> None:
    kept = facts_of(names()[0])
    restore(names()[0], empty.database.owner_url)
    made = empty.custody("backup", str(tmp_path / "copy"))
    assert made.returncode == 0, made.stderr
    url = empty.database.owner_url
    asyncio.run(
        _ask(
            empty.fresh_url,
            f"DROP DATABASE {_name(url)} WITH (FORCE)",
            f"CREATE DATABASE {_name(url)} TEMPLATE template0",
        )
    )

    restored = empty.custody("restore", str(tmp_path / "copy"), "--verify")

    assert (restored.returncode, "Traceback" in restored.stderr) == (0, False), restored.stderr
    assert "Migrated it forward" in restored.stdout
    assert schema(url) == schema(empty.fresh_url)
    assert kept.tenant in rows(url)


def _without_new_names(found: str, before: str) -> list[str]:
    """Rows without the times and random ids that the migrations put into them."""
    kept = set(NAMES.findall(before))
    return sorted(NAMES.sub(lambda name: name[0] if name[0] in kept else "new", found).splitlines())


def _empty(name: str) -> tuple[str, str]:
    return f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0"


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _other(database: Database, name: str) -> Database:
    urls = {process: in_database(url, name) for process, url in database.urls.items()}
    return Database(in_database(database.owner_url, name), urls)


async def _count(url: str, query: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(query))
    finally:
        await connection.close()


async def _ask(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(in_database(url, "postgres"))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
