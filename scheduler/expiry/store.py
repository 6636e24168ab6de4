"""Queries of retention, over all tenants."""

from custody.kit.db import Pool


async def lines(pool: Pool) -> list[str]:
    """The rules of the table `retention`, in their order."""
    return [row["what"] for row in await pool.fetch("SELECT what FROM retention ORDER BY place")]


async def empty_rejected(pool: Pool, limit: int) -> int:
    """Empty the bytes of up to so many rejected orders; gives back how many."""
    gone: int = await pool.fetchval("SELECT empty_rejected($1)", limit)
    return gone


async def delete(pool: Pool, what: str, limit: int) -> int:
    """Delete up to so many old rows of one rule; gives back how many."""
    gone: int = await pool.fetchval("SELECT retain($1, $2)", what, limit)
    return gone
