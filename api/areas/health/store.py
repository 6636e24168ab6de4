"""Queries of readiness."""

import datetime as dt

from custody.kit.db import Pool


async def schema_version(pool: Pool) -> tuple[str, str]:
    """The newest migration that the database has, and the digest of its functions."""
    row = await pool.fetchrow("SELECT migration, functions FROM schema_version()")
    return row["migration"], row["functions"]


async def jobs(pool: Pool) -> dict[str, dt.datetime | None]:
    """Read when each job last ended well."""
    rows = await pool.fetch("SELECT name, last_success_at FROM jobs ORDER BY name")
    return {row["name"]: row["last_success_at"] for row in rows}
