"""A database that begins with 0101 equals one that came by the migrations from before 1.0, to the byte of a dump."""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from custody.database.texts import Text, read
from custody.migrations import BEFORE
from ops import places
from ops.migrate import FUNCTIONS, migrate, missing, names, names_before
from ops.runtime import PROJECT
from tests.fixtures.postgres import in_database
from tests.upgrades.schemas import schema

FOLDER = PROJECT / "custody/migrations"
# The order of columns, of grants, a comment, a check, and how rows are stored.
CHANGES = (
    "ALTER TABLE deleted_agents DROP COLUMN day; ALTER TABLE deleted_agents ADD COLUMN day date NOT NULL",
    "REVOKE ALL ON secrets FROM custody_api; GRANT SELECT ON secrets TO custody_api",
    "COMMENT ON COLUMN tenants.name IS 'Its name.'",
    "ALTER TABLE spend DROP CONSTRAINT spend_amount_check",
    "ALTER TABLE transactions RESET (toast_tuple_target)",
)
LATER = """
from tortoise.migrations.migration import Migration as Parent
from tortoise.migrations.operations import RunSQL

class Migration(Parent):
    operations = [RunSQL("CREATE TABLE later (n int)")]
    dependencies = [("custody", {after!r})]
"""


@pytest.fixture
async def databases(postgres_home: places.Home, worker_id: str) -> tuple[str, str]:
    """The owner's addresses of two databases in which nothing is."""
    owner_url = postgres_home.file("db", "owner.url").read_text()
    made = [f"history_{worker_id}_{number}" for number in (1, 2)]
    connection = await asyncpg.connect(in_database(owner_url, "postgres"))
    for name in made:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    await connection.close()
    return in_database(owner_url, made[0]), in_database(owner_url, made[1])


@pytest.fixture
def importable(tmp_path: Path) -> Iterator[Path]:
    """A folder in which packages are found, under names that no other test gives."""
    folder = tmp_path / f"histories_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    sys.path.insert(0, str(tmp_path))
    yield folder
    sys.path.remove(str(tmp_path))


@pytest.fixture
def older(request: pytest.FixtureRequest, importable: Path) -> str:
    """The first migrations from before 1.0, as many as are asked for, as a package."""
    folder = importable / "older"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in names_before()[: request.param]:
        shutil.copy(FOLDER / BEFORE / f"{name}.py", folder)
    return f"{importable.name}.older"


@pytest.fixture
def later(importable: Path) -> str:
    """The migrations of this version with the older ones, and one more, as a package."""
    shutil.copytree(FOLDER, importable / "later", ignore=shutil.ignore_patterns("__pycache__"))
    (importable / "later/9999_later.py").write_text(LATER.format(after=names()[-1]))
    return f"{importable.name}.later"


@pytest.mark.parametrize("older", [1, 10, len(names_before())], indirect=True)
async def test_both_histories_make_the_same_database(
    databases: tuple[str, str], postgres_home: places.Home, older: str
) -> None:
    old, new = databases
    there = names(older)
    assert await migrate(old, postgres_home, package=older, texts=needed_by_tables()) == [*there, FUNCTIONS]
    assert await missing(old, read()) == [*names_before()[len(there) :], *names(), FUNCTIONS]

    assert await migrate(old, postgres_home) == [*names_before()[len(there) :], *names(), FUNCTIONS]
    assert await migrate(new, postgres_home) == [*names(), FUNCTIONS]

    assert schema(old) == schema(new)
    assert await retention_of(old) == await retention_of(new)
    assert await migrations_of(old) == [*names_before(), *names()]
    assert await migrations_of(new) == names()
    assert [await migrate(url, postgres_home) for url in databases] == [[], []]


@pytest.mark.parametrize("older", [10, len(names_before())], indirect=True)
async def test_both_histories_go_on_alike(
    databases: tuple[str, str], postgres_home: places.Home, older: str, later: str
) -> None:
    """A later migration reaches both; none that was noted is applied."""
    old, new = databases
    await migrate(old, postgres_home, package=older, texts=needed_by_tables())
    await migrate(new, postgres_home)

    applied = await migrate(old, postgres_home, package=later)
    assert await migrate(new, postgres_home, package=later) == ["9999_later"]

    assert applied == [*names_before()[len(names(older)) :], *names(), "9999_later", FUNCTIONS]
    assert schema(old) == schema(new)
    assert "CREATE TABLE public.later" in schema(old)


@pytest.mark.parametrize("older", [10], indirect=True)
async def test_several_at_once_bring_an_older_database_up_once(
    databases: tuple[str, str], postgres_home: places.Home, older: str
) -> None:
    old, _ = databases
    await migrate(old, postgres_home, package=older, texts=needed_by_tables())
    script = (
        "import asyncio, sys; from pathlib import Path; from ops import places; from ops.migrate import migrate; "
        "print(len(asyncio.run(migrate(sys.argv[1], places.open_home(Path(sys.argv[2]))))))"
    )

    runs = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, old, str(postgres_home.path), stdout=asyncio.subprocess.PIPE
        )
        for _ in range(3)
    ]
    answers = [int((await run.communicate())[0]) for run in runs]

    assert sorted(answers) == [0, 0, len(names_before()) - len(names(older)) + len([*names(), FUNCTIONS])]
    assert await migrations_of(old) == [*names_before(), *names()]


async def test_the_comparison_sees_each_difference(databases: tuple[str, str], postgres_home: places.Home) -> None:
    one, _ = databases
    await migrate(one, postgres_home)
    seen = [schema(one)]
    owner = await asyncpg.connect(one)

    for change in CHANGES:
        await owner.execute(change)
        seen.append(schema(one))

    await owner.close()
    assert schema(one) == seen[-1]
    assert len(set(seen)) == 1 + len(CHANGES)


def needed_by_tables() -> list[Text]:
    """The functions that tables stand on: they alone fit tables of any age."""
    return [text for text in read() if text.needed_by_tables]


async def retention_of(url: str) -> list[tuple[object, ...]]:
    """The lines of retention, in their order."""
    owner = await asyncpg.connect(url)
    rows = await owner.fetch("SELECT place, what, relation, old FROM retention ORDER BY place")
    await owner.close()
    return [tuple(row) for row in rows]


async def migrations_of(url: str) -> list[str]:
    """The migrations that a database is noted to have, each once."""
    owner = await asyncpg.connect(url)
    rows = await owner.fetch("SELECT name FROM tortoise_migrations WHERE app = 'custody' ORDER BY name")
    await owner.close()
    return [row["name"] for row in rows]
