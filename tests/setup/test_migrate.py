"""Roles, migrations and the files with each process' address. Promise P4."""

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from custody.database.texts import read
from custody.kit.environment import BadSetting
from custody.kit.schema_version import NewerDatabase
from ops import connections, owners, places, roles
from ops.migrate import FUNCTIONS, migrate, missing, names
from ops.runtime import PROJECT
from ops.settings import PROCESSES
from tests.fixtures.postgres import Database, in_database

MIGRATION = """
from pathlib import Path
from tortoise.migrations.migration import Migration as Parent
from tortoise.migrations.operations import RunSQL

class Migration(Parent):
    operations = [RunSQL({sql!r})]
    dependencies = {after!r}
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """An importable package of migrations, still empty."""
    folder = tmp_path / f"history_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    sys.path.insert(0, str(tmp_path))
    yield folder
    sys.path.remove(str(tmp_path))


@pytest.fixture
def empty(postgres_home: places.Home, worker_id: str, request: pytest.FixtureRequest) -> str:
    """The owner's address of a database in which nothing is."""
    owner_url = postgres_home.file("db", "owner.url").read_text()
    name = f"empty_{worker_id}_{abs(hash(request.node.nodeid))}"

    async def create() -> None:
        connection = await asyncpg.connect(in_database(owner_url, "postgres"))
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        await connection.close()

    asyncio.run(create())
    return in_database(owner_url, name)


def add(package: Path, name: str, sql: str, *after: str) -> None:
    text = MIGRATION.format(sql=sql, after=[("custody", earlier) for earlier in after])
    (package / f"{name}.py").write_text(text)


async def test_each_migration_is_applied_once_and_in_order(
    empty: str, postgres_home: places.Home, package: Path
) -> None:
    add(package, "0001_first", "CREATE TABLE first (n int); INSERT INTO first VALUES (1)")
    add(package, "0002_second", "UPDATE first SET n = n + 1", "0001_first")

    assert await migrate(empty, postgres_home, package=package.name, texts=[]) == ["0001_first", "0002_second"]
    assert await migrate(empty, postgres_home, package=package.name, texts=[]) == []
    assert await missing(empty, [], package.name) == []


async def test_a_failing_migration_leaves_nothing_of_the_ones_before_it(
    empty: str, postgres_home: places.Home, package: Path
) -> None:
    add(package, "0001_first", "CREATE TABLE first (n int)")
    add(package, "0002_wrong", "SELECT no_such_function()", "0001_first")

    with pytest.raises(Exception, match="no_such_function"):
        await migrate(empty, postgres_home, package=package.name, texts=[])

    assert await missing(empty, [], package.name) == ["0001_first", "0002_wrong"]


async def test_a_newer_database_is_refused_before_anything_touches_it(
    empty: str, postgres_home: places.Home, package: Path
) -> None:
    add(package, "0001_first", "CREATE TABLE first (n int)")
    await migrate(empty, postgres_home, package=package.name, texts=[])
    connection = await asyncpg.connect(empty)
    await connection.execute(
        "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('custody', '9999_future', now())"
    )
    await connection.close()
    add(package, "0002_second", "CREATE TABLE second (n int)", "0001_first")

    with pytest.raises(NewerDatabase, match=r"newer Custody \(9999_future"):
        await migrate(empty, postgres_home, package=package.name, texts=[])

    connection = await asyncpg.connect(empty)
    assert await connection.fetchval("SELECT to_regclass('second')") is None
    await connection.close()


async def test_a_database_from_before_the_squash_is_called_old_and_stays(
    empty: str, postgres_home: places.Home, package: Path
) -> None:
    add(package, "0001_foundation", "CREATE TABLE first (n int)")
    add(package, "0012_rotation", "CREATE TABLE second (n int)", "0001_foundation")
    await migrate(empty, postgres_home, package=package.name, texts=[])

    ended = custody(empty, tempfile.mkdtemp(prefix="cs-"), postgres_home, "migrate")

    assert ended.returncode == 1
    assert "made before 2026-11-23" in ended.stderr
    assert "cannot be upgraded; nothing was changed. Start the version that made it" in ended.stderr
    assert "newer" not in ended.stderr
    connection = await asyncpg.connect(empty)
    assert await connection.fetchval("SELECT count(*) FROM tortoise_migrations") == 2
    await connection.close()


def custody(url: str, home: str, of: places.Home | None, *words: str) -> subprocess.CompletedProcess[str]:
    """A command on a database, as its owner; with the processes' addresses that a state folder has."""
    urls = {
        f"SERVICE_DATABASE_URL_{p.upper()}": of.file("db", f"{p}.url").read_text().strip()
        for p in (PROCESSES if of else ())
    }
    return subprocess.run(
        [sys.executable, "-P", "-m", "ops", *words],
        env={"PATH": os.defpath, "PYTHONPATH": str(PROJECT), "SERVICE_HOME": home, "SERVICE_DATABASE_URL": url, **urls},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("process", ["signer", "scheduler", "proxy_addon"])
def test_no_process_starts_on_a_newer_database(empty: str, postgres_home: places.Home, process: str) -> None:
    async def newer() -> None:
        connection = await asyncpg.connect(empty)
        await connection.execute(
            "CREATE FUNCTION schema_version(OUT migration text, OUT functions text) "
            "LANGUAGE sql AS $$SELECT '9999_future', ''$$"
        )
        await connection.close()

    asyncio.run(newer())
    role = process.removesuffix("_addon")
    home = {"SERVICE_HOME": tempfile.mkdtemp(prefix="cs-"), f"SERVICE_DATABASE_URL_{role.upper()}": empty}
    ended = subprocess.run(
        [sys.executable, "-P", "-m", process],
        env={"PATH": os.defpath, "PYTHONPATH": str(PROJECT), **home},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 1
    assert "newer Custody (9999_future" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_several_at_once_apply_a_migration_once(empty: str, postgres_home: places.Home, package: Path) -> None:
    add(package, "0001_first", "CREATE TABLE first (n int)")
    script = (
        "import asyncio, sys; from pathlib import Path; from ops import places; "
        "from ops.migrate import migrate; sys.path.insert(0, sys.argv[3]); "
        "print(asyncio.run(migrate(sys.argv[1], places.open_home(Path(sys.argv[2])), package=sys.argv[4], texts=[])))"
    )
    words = [empty, str(postgres_home.path), str(package.parent), package.name]

    runs = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, *words, stdout=asyncio.subprocess.PIPE)
        for _ in range(3)
    ]
    answers = [(await run.communicate())[0].decode().strip() for run in runs]

    assert sorted(answers) == ["['0001_first']", "[]", "[]"]


@pytest.mark.parametrize("process", ["api", "signer", "scheduler", "proxy"])
async def test_a_process_signs_in_under_a_role_without_privileges(database: Database, process: str) -> None:
    connection = await asyncpg.connect(database.urls[process])
    role = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = current_user")
    owned = await connection.fetchval("SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole")
    await connection.close()

    assert role is not None
    assert role["rolname"] == f"custody_{process}"
    assert not any(role[name] for name in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb"))
    assert owned == 0


async def test_the_role_that_looks_across_tenants_cannot_log_in(owner: asyncpg.Connection) -> None:
    assert await owner.fetchval("SELECT rolcanlogin FROM pg_roles WHERE rolname = $1", roles.DEFINER) is False


async def test_only_the_signer_plans_without_whole_table_reads(database: Database) -> None:
    settings = {}
    for process, url in database.urls.items():
        connection = await asyncpg.connect(url)
        settings[process] = await connection.fetchval("SHOW enable_seqscan")
        await connection.close()

    assert settings == {"signer": "off", "identity": "off", "api": "on", "scheduler": "on", "proxy": "on"}


def test_only_its_process_can_read_an_address(postgres_home: places.Home) -> None:
    for process in ("api", "signer", "scheduler", "proxy"):
        found = postgres_home.file("db", f"{process}.url").stat()

        assert stat.S_IMODE(found.st_mode) == 0o600
        assert found.st_uid == (postgres_home.uid_of(process) or found.st_uid)


async def test_an_owner_that_is_no_superuser_can_migrate(
    postgres_home: places.Home, worker_id: str, owner: asyncpg.Connection, open_folder: Path
) -> None:
    name, database = f"tenant_owner_{worker_id}", f"managed_{worker_id}"
    await owner.execute(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'managed'")
    for role in ("custody_definer", *(f"custody_{p}" for p in ("api", "signer", "identity", "scheduler", "proxy"))):
        await owner.execute(f"GRANT {role} TO {name} WITH ADMIN OPTION")
    await owner.execute(f"CREATE DATABASE {database} OWNER {name} TEMPLATE template0")
    url = in_database(postgres_home.file("db", "owner.url").read_text(), database)
    url = url.replace(url.split("://")[1].split("@")[0], f"{name}:managed")
    given = {
        p: postgres_home.file("db", f"{p}.url").read_text() for p in ("api", "signer", "identity", "scheduler", "proxy")
    }

    applied = await migrate(url, places.open_home(open_folder / "other"), given=given)

    assert applied == [*names(), FUNCTIONS]


async def test_an_address_may_name_several_hosts(postgres_home: places.Home, empty: str, open_folder: Path) -> None:
    """Each of our own and each program of Postgres finds the one that answers."""
    several = empty.replace("?host=", "?host=/nowhere,/nor-there,") + "&target_session_attrs=read-write"
    assert several.count(",") == 2

    # The roles are everybody's here, so their passwords stay.
    given = {process: postgres_home.file("db", f"{process}.url").read_text() for process in PROCESSES}

    assert await migrate(several, places.open_home(open_folder / "several"), given=given) == [*names(), FUNCTIONS]
    assert await missing(several, read()) == []
    asked = subprocess.run(
        [owners.program("psql"), "-Atc", "SELECT count(*) > 0 FROM pg_tables WHERE schemaname = 'public'"],
        env=owners.environment_for(several),
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == "t"


async def test_another_database_of_the_server_keeps_its_passwords_and_limits(
    empty: str, postgres_home: places.Home, open_folder: Path
) -> None:
    """A role belongs to the server. All tests use this one, so a test that forgets `given` fails here and alone."""
    shared = in_database(postgres_home.file("db", "owner.url").read_text(), "postgres")
    before = await _shared_roles(shared)

    with pytest.raises(BadSetting, match=r"SERVICE_DATABASE_URL_SIGNER: must be set, or .* custody\w* of this server"):
        await migrate(empty, places.open_home(open_folder / "other"))
    refused = custody(empty, str(open_folder / "third"), None, "migrate")
    done = custody(empty, str(open_folder / "fourth"), postgres_home, "migrate")

    assert (refused.returncode, "a new password would shut its processes out" in refused.stderr) == (2, True)
    assert (done.returncode, done.stderr) == (0, "")
    assert await _shared_roles(shared) == before
    # And so the limit was not merely the same.
    assert {limit > connections.BY_DEFAULT["api"] for limit, _ in before} == {True}


async def _shared_roles(url: str) -> list[tuple[int, str]]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT rolconnlimit, rolpassword FROM pg_authid WHERE rolname = ANY ($1) ORDER BY rolname",
            [f"custody_{process}" for process in PROCESSES],
        )
        return [(row["rolconnlimit"], row["rolpassword"]) for row in rows]
    finally:
        await connection.close()


def test_a_program_of_postgres_gets_the_port_of_each_host() -> None:
    found = owners.environment_for("postgresql://u:p%2Fw@one:5433,two,[::1]:5434/db?target_session_attrs=read-write")

    assert (found["PGHOST"], found["PGPORT"]) == ("one,two,::1", "5433,5432,5434")
    assert (found["PGPASSWORD"], found["PGTARGETSESSIONATTRS"]) == ("p/w", "read-write")
