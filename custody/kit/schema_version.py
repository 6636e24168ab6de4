"""The database's version, as processes look at it when they start and in `/ready`."""

from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

_MIGRATIONS = Path(__file__).parents[1] / "migrations"


class NewerDatabase(RuntimeError):
    """A newer version of Custody has brought this database up, so this one must not touch it."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"this database is of a newer Custody ({version}; this one knows {newest()}): start the newer "
            "version, or restore a backup from before (docs/recovery.md)"
        )


async def refuse_newer(pool: Any) -> None:
    """Raise NewerDatabase if the database has a migration that this code does not know. Every process starts with it.

    One that lacks migrations is `/ready`'s business: it waits for `custody migrate`.
    """
    try:
        found = await pool.fetchval("SELECT migration FROM schema_version()")
    except (asyncpg.UndefinedFunctionError, asyncpg.InsufficientPrivilegeError):
        return  # not brought up yet
    if found is not None and found > newest():
        raise NewerDatabase(found)


@cache
def newest() -> str:
    """The name of the newest migration that this code knows."""
    return max(file.stem for file in _MIGRATIONS.glob("[0-9]*.sql"))
