"""All that a database is made of, as the programs of Postgres tell it: two that differ in anything differ here."""

import re
import subprocess

from ops import owners


def schema(url: str) -> str:
    """Every definition, owner, grant and comment of a database, without its rows."""
    return _dump(url, "--schema-only")


def rows(url: str, *, without: tuple[str, ...] = ()) -> str:
    """Every row of a database, in an order of its own; not the counters, which Postgres never takes back."""
    lines = _dump(url, "--data-only", *(f"--exclude-table-data={table}" for table in without)).splitlines()
    return "\n".join(sorted(line for line in lines if not line.startswith("SELECT pg_catalog.setval(")))


def _dump(url: str, *words: str) -> str:
    ended = subprocess.run(
        [owners.program("pg_dump"), "--no-password", *words],
        env=owners.environment_for(url),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # Newer programs write a word of their own into each script, so that nobody can smuggle commands into it.
    return re.sub(r"^\\(un)?restrict .*\n", "", ended.stdout, flags=re.MULTILINE)
