"""The database's history: each migration is a small module that runs the SQL file beside it."""

from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "before_1_0"


def sql(module: str) -> list[Any]:
    """The operations of a migration: the SQL file of the same name, as a whole. Call it with `__name__`."""
    from tortoise.migrations.operations import RunSQL  # noqa: PLC0415

    return [RunSQL((_FOLDER / f"{module.rpartition('.')[2]}.sql").read_text())]
