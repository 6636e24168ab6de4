"""The key-value store of the tests, through the client that the rate limit uses."""

from collections.abc import Iterator

import pytest
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage, Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string
from valkey.exceptions import ConnectionError as NotConnected
from valkey.exceptions import TimeoutError as TooSlow

from tests.outside.redis_server import RedisServer, running_redis

TWO = RateLimitItemPerMinute(2)


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


async def hits(url: str, count: int, seconds: float = 5.0) -> list[bool]:
    """Return the answers of a process that has just started to so many requests of one caller."""
    storage: Storage = storage_from_string(f"async+{url}", implementation="valkey", socket_timeout=seconds)
    assert isinstance(storage, RedisStorage)
    limiter = FixedWindowRateLimiter(storage)
    try:
        return [await limiter.hit(TWO, "somebody") for _ in range(count)]
    finally:
        await storage.bridge.storage.aclose()


async def test_two_processes_share_one_count(redis: RedisServer) -> None:
    assert await hits(redis.url, 1) == [True]
    assert await hits(redis.url, 2) == [True, False]

    redis.flush()

    assert await hits(redis.url, 1) == [True]
    assert len(redis.keys()) == 1


async def test_the_other_scheme_reaches_the_same_store(redis: RedisServer) -> None:
    assert await hits(redis.url, 2) == [True, True]
    assert await hits(redis.url.replace("redis:", "valkey:"), 1) == [False]


async def test_it_goes_away_and_comes_back_empty(redis: RedisServer) -> None:
    assert await hits(redis.url, 3) == [True, True, False]

    redis.stop()

    with pytest.raises(NotConnected):
        await hits(redis.url, 1)

    redis.start()

    assert await hits(redis.url, 1) == [True]


async def test_held_still_it_keeps_its_counts(redis: RedisServer) -> None:
    assert await hits(redis.url, 2) == [True, True]

    redis.hold()

    with pytest.raises(TooSlow):
        await hits(redis.url, 1, 0.3)

    redis.let_go()

    assert await hits(redis.url, 1) == [False]
