"""The database's history: each migration is a small module that runs the SQL file beside it.

An empty database begins with 0101. One that was made before 1.0 has another history, in before_1_0/: it takes the
rest of that, which comes to the same tables, and is noted to have 0101 to 0114 as well.
"""

from pathlib import Path
from typing import Any

# The folder of the older history, and the last of the migrations that it stands for.
BEFORE, SQUASHED = "before_1_0", "0114_access"
_FOLDER = Path(__file__).parent


def sql(module: str) -> list[Any]:
    """The operations of a migration: the SQL file of the same name, as a whole. Call it with `__name__`."""
    from tortoise.migrations.operations import RunSQL  # noqa: PLC0415

    name = f"{module.rpartition('.')[2]}.sql"
    file = _FOLDER / name
    return [RunSQL((file if file.exists() else _FOLDER / BEFORE / name).read_text())]
