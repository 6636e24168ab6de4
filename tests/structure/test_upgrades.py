"""Each state that migrations and functions have had is kept as a database, small and whole."""

import hashlib

import pytest

from custody.migrations import SQUASHED
from ops.migrate import names, names_before
from tests.upgrades import kept
from tests.upgrades.kept import FOLDER, ROOT, digest, facts_of, state

MOST_BYTES = 120_000
# Every migration as databases have it: a line is added with a migration, and none ever changes.
COMMITTED = FOLDER.parent / "migrations.sha256"
MIGRATIONS = ROOT / "custody/migrations"
# Made between two forms of a migration, when not every table had a way to be filled.
BETWEEN_FORMS = "2026-11-23-59c6cfed"


def test_a_migration_is_never_changed() -> None:
    """A database that had the old form would never get what the new one has (0032 mends the one that was)."""
    files = sorted(MIGRATIONS.rglob("[0-9]*_*.*"))
    now = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(MIGRATIONS)}"
        for file in files
        if file.suffix in {".sql", ".py"}
    ]

    assert now == COMMITTED.read_text().splitlines(), "write another migration; add the lines of a new one"


def test_nothing_joins_the_older_history() -> None:
    """A database that begins with 0101 would never have it."""
    assert (names_before()[-1], names()[0]) == ("0032_import_sessions", "0101_tenants")
    assert SQUASHED in names()
    assert set(names_before()) & set(names()) == set()


def test_a_database_of_this_state_is_kept() -> None:
    states = {facts_of(name).state: name for name in kept.names()}

    assert state() in states, "migrations or functions changed: run scripts/keep-upgrade and commit what it keeps"


@pytest.mark.parametrize("name", kept.names())
def test_a_kept_database_is_small_and_has_rows_in_every_table(name: str) -> None:
    facts = facts_of(name)

    assert (FOLDER / f"{name}.sql.xz").stat().st_size < MOST_BYTES
    assert (facts.empty == []) is (name != BETWEEN_FORMS)
    assert len(facts.tables) > 50


def test_a_folded_dump_unfolds_to_itself() -> None:
    rows = rb"a\tCREATE FUNCTION a() AS $$\n  -- it says \\n\nEND $$" + b"\nb\t\\N"
    dump = (
        b"x\\n\nCOPY public.applied_sql (name, text) FROM stdin;\n" + rows + b"\n\\.\n\nCOPY public.b FROM\n\\n\n\\.\n"
    )

    assert kept.fold(kept.fold(dump)) == dump
    assert kept.fold(dump) != dump


def test_another_function_is_another_state() -> None:
    files = sorted((ROOT / "custody/database").rglob("*.sql"))

    assert digest(files) != digest(files[1:])
    assert digest(files) == digest(reversed(files))
