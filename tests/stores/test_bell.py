"""Whoever waits for something in the database is woken by it, whatever becomes of the connection meanwhile."""

import asyncio
import gc
from collections.abc import AsyncIterator

import asyncpg
import pytest

from custody.kit.bell import Bell
from tests.fixtures.postgres import Database

CHANNEL = "tests_bell"
SECONDS = 10


@pytest.fixture
async def bell(database: Database) -> AsyncIterator[Bell]:
    """One that hears."""
    bell = Bell()
    task = asyncio.get_running_loop().create_task(bell.listen(database.urls["api"], CHANNEL))
    await until_it_works(bell)
    yield bell
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def api(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """Somebody who tells."""
    connection = await asyncpg.connect(database.urls["api"])
    yield connection
    await connection.close()


async def until_it_works(bell: Bell) -> None:
    listener = bell.listener("*", most=1, most_in_all=9)
    assert listener is not None
    async with asyncio.timeout(SECONDS):
        while not bell.works:
            await listener.heard(0.05)
    bell.leave("*", listener)


async def test_a_topic_wakes_who_waits_for_it_and_nobody_else(bell: Bell, api: asyncpg.Connection) -> None:
    one, other = bell.listener("one", most=1, most_in_all=9), bell.listener("other", most=1, most_in_all=9)
    assert one is not None
    assert other is not None

    await api.execute("SELECT pg_notify($1, 'one')", CHANNEL)

    async with asyncio.timeout(SECONDS):
        await one.heard(2 * SECONDS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await other.heard(2 * SECONDS)


async def test_it_goes_on_hearing_although_nothing_but_it_holds_its_connection(database: Database) -> None:
    bell = Bell()
    asyncio.get_running_loop().create_task(bell.listen(database.urls["api"], CHANNEL))
    await until_it_works(bell)
    listener = bell.listener("one", most=1, most_in_all=9)
    assert listener is not None

    gc.collect()
    connection = await asyncpg.connect(database.urls["api"])
    await connection.execute("SELECT pg_notify($1, 'one')", CHANNEL)
    await connection.close()

    async with asyncio.timeout(SECONDS):
        await listener.heard(2 * SECONDS)
    assert bell.works
    held = [task for task in asyncio.all_tasks() if "listen" in repr(task.get_coro())]
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def test_when_its_connection_is_cut_it_wakes_everybody_and_hears_again(
    bell: Bell, api: asyncpg.Connection
) -> None:
    listener = bell.listener("one", most=1, most_in_all=9)
    assert listener is not None
    cut = await api.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1",
        f"LISTEN %{CHANNEL}%",
    )

    # What was told in between was not heard, so everybody looks for himself.
    async with asyncio.timeout(SECONDS):
        await listener.heard(2 * SECONDS)
    await until_it_works(bell)
    await api.execute("SELECT pg_notify($1, 'one')", CHANNEL)
    async with asyncio.timeout(SECONDS):
        await listener.heard(2 * SECONDS)
    assert cut


async def test_some_topics_leave_room_to_the_others() -> None:
    bell = Bell()
    taken = [bell.listener(topic, most=5, most_in_all=20) for topic in ("one", "other") for _ in range(5)]
    assert None not in taken

    third = [bell.listener("third", most=5, most_in_all=20) for _ in range(3)]

    assert [listener is not None for listener in third] == [True, True, False]


async def test_there_is_room_for_so_many_and_again_when_they_leave() -> None:
    bell = Bell()
    two = [bell.listener("one", most=2, most_in_all=3) for _ in range(2)]
    assert None not in two
    assert bell.listener("one", most=2, most_in_all=3) is None
    other = bell.listener("other", most=2, most_in_all=3)
    assert other is not None
    assert bell.listener("third", most=2, most_in_all=3) is None

    bell.leave("other", other)
    # Who was forgotten has left too.
    two.pop()

    assert bell.listener("one", most=2, most_in_all=3) is not None


async def test_when_it_closes_everybody_is_woken_and_nobody_comes() -> None:
    bell = Bell()
    listener = bell.listener("one", most=1, most_in_all=1)
    assert listener is not None

    async def goes_home() -> None:
        await listener.heard(SECONDS)
        bell.leave("one", listener)

    async with asyncio.timeout(SECONDS / 2):
        await asyncio.gather(goes_home(), bell.close(SECONDS))
    assert bell.listener("one", most=1, most_in_all=1) is None
