"""Each state that migrations and functions have had is kept as a database, small and whole."""

import hashlib

import pytest

from tests.upgrades.kept import FOLDER, ROOT, digest, known, names, state

MOST_BYTES = 120_000
# Every migration as databases have it: a line is added with a migration, and none ever changes.
COMMITTED = FOLDER.parent / "migrations.sha256"
# Made between two forms of a migration, when not every table had a way to be filled.
BETWEEN_FORMS = "2026-11-23-59c6cfed"


def test_a_migration_is_never_changed() -> None:
    """A database that had the old form would never get what the new one has (0032 mends the one that was)."""
    files = sorted((ROOT / "custody/migrations/before_1_0").glob("*.sql"))
    now = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]

    assert now == COMMITTED.read_text().splitlines(), "write another migration; add the line of a new one"


def test_a_database_of_this_state_is_kept() -> None:
    states = {known(name).state: name for name in names()}

    assert state() in states, "migrations or functions changed: run scripts/keep-upgrade and commit what it keeps"


@pytest.mark.parametrize("name", names())
def test_a_kept_database_is_small_and_has_rows_in_every_table(name: str) -> None:
    kept = known(name)

    assert (FOLDER / f"{name}.sql.xz").stat().st_size < MOST_BYTES
    assert (kept.empty == []) is (name != BETWEEN_FORMS)
    assert len(kept.tables) > 50


def test_another_function_is_another_state() -> None:
    files = sorted((ROOT / "custody/database").rglob("*.sql"))

    assert digest(files) != digest(files[1:])
    assert digest(files) == digest(reversed(files))
