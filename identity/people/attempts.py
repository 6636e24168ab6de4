"""Guesses, counted before they are looked at, so that no number of them at once is one too many."""

from typing import Any

from custody.protocol.identity.refusals import TooManyAttempts
from identity.context import Identity


async def count(identity: Identity, subject: str, limit: int, seconds: int) -> None:
    """Take one of `limit` guesses that a subject has in `seconds`, for good; TooManyAttempts when none is left."""
    async with identity.pool.acquire() as connection:
        left = await connection.fetchval("SELECT count_attempt($1, $2, $3)", subject, limit, seconds)
    if left:
        raise TooManyAttempts(retry_after=left)


async def is_within(identity: Identity, subject: str, limit: int, seconds: int) -> bool:
    """The same for what is not answered differently when there is none left."""
    async with identity.pool.acquire() as connection:
        return bool(await connection.fetchval("SELECT count_attempt($1, $2, $3)", subject, limit, seconds) == 0)


async def forget(connection: Any, subject: str) -> None:
    """A right answer: the guesses before it no longer count."""
    await connection.execute("DELETE FROM attempts WHERE subject = $1", subject)


async def take_back(connection: Any, subject: str) -> None:
    """A right answer where the wrong ones before it go on counting: it was no guess itself."""
    await connection.execute("UPDATE attempts SET count = count - 1 WHERE subject = $1 AND count > 0", subject)
