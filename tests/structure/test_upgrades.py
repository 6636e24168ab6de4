"""Each state that migrations and functions have had is kept as a database, small and whole."""

import pytest

from tests.upgrades.kept import FOLDER, ROOT, digest, known, names, state

MOST_BYTES = 120_000


def test_a_database_of_this_state_is_kept() -> None:
    states = {known(name).state: name for name in names()}

    assert state() in states, "migrations or functions changed: run scripts/keep-upgrade and commit what it keeps"


@pytest.mark.parametrize("name", names())
def test_a_kept_database_is_small_and_has_rows_in_every_table(name: str) -> None:
    kept = known(name)

    assert (FOLDER / f"{name}.sql.xz").stat().st_size < MOST_BYTES
    assert kept.empty == []
    assert len(kept.tables) > 50


def test_another_function_is_another_state() -> None:
    files = sorted((ROOT / "custody/database").rglob("*.sql"))

    assert digest(files) != digest(files[1:])
    assert digest(files) == digest(reversed(files))
