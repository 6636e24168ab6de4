"""A listener is woken by a change in the database, whatever becomes of the connection meanwhile."""

import asyncio
import gc
from collections.abc import AsyncIterator

import asyncpg
import pytest

from custody.kit.notifier import Notifier
from tests.fixtures.postgres import Database

CHANNEL = "tests_bell"
SECONDS = 60


@pytest.fixture
async def notifier(database: Database) -> AsyncIterator[Notifier]:
    """One that hears."""
    notifier = Notifier()
    task = asyncio.get_running_loop().create_task(notifier.listen(database.urls["api"], CHANNEL))
    await until_it_works(notifier)
    yield notifier
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def api(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """Somebody who tells."""
    connection = await asyncpg.connect(database.urls["api"])
    yield connection
    await connection.close()


async def until_it_works(notifier: Notifier) -> None:
    listener = notifier.listener("*", most=1, most_in_all=9)
    assert listener is not None
    async with asyncio.timeout(SECONDS):
        while not notifier.connected:
            await listener.wait(0.05)
    notifier.leave("*", listener)


async def test_a_topic_wakes_who_waits_for_it_and_nobody_else(notifier: Notifier, api: asyncpg.Connection) -> None:
    one, other = notifier.listener("one", most=1, most_in_all=9), notifier.listener("other", most=1, most_in_all=9)
    assert one is not None
    assert other is not None

    await api.execute("SELECT pg_notify($1, 'one')", CHANNEL)

    async with asyncio.timeout(SECONDS):
        await one.wait(2 * SECONDS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await other.wait(2 * SECONDS)


async def test_it_goes_on_hearing_although_nothing_but_it_holds_its_connection(database: Database) -> None:
    notifier = Notifier()
    asyncio.get_running_loop().create_task(notifier.listen(database.urls["api"], CHANNEL))
    await until_it_works(notifier)
    listener = notifier.listener("one", most=1, most_in_all=9)
    assert listener is not None

    gc.collect()
    connection = await asyncpg.connect(database.urls["api"])
    await connection.execute("SELECT pg_notify($1, 'one')", CHANNEL)
    await connection.close()

    async with asyncio.timeout(SECONDS):
        await listener.wait(2 * SECONDS)
    assert notifier.connected
    held = [task for task in asyncio.all_tasks() if "listen" in repr(task.get_coro())]
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def test_when_its_connection_is_cut_it_wakes_everybody_and_hears_again(
    notifier: Notifier, api: asyncpg.Connection
) -> None:
    listener = notifier.listener("one", most=1, most_in_all=9)
    assert listener is not None
    cut = await api.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1",
        f"LISTEN %{CHANNEL}%",
    )

    # Notifications in between were not heard, so every listener looks again.
    async with asyncio.timeout(SECONDS):
        await listener.wait(2 * SECONDS)
    await until_it_works(notifier)
    await api.execute("SELECT pg_notify($1, 'one')", CHANNEL)
    async with asyncio.timeout(SECONDS):
        await listener.wait(2 * SECONDS)
    assert cut


async def test_some_topics_leave_room_to_the_others() -> None:
    notifier = Notifier()
    taken = [notifier.listener(topic, most=5, most_in_all=20) for topic in ("one", "other") for _ in range(5)]
    assert None not in taken

    third = [notifier.listener("third", most=5, most_in_all=20) for _ in range(3)]

    assert [listener is not None for listener in third] == [True, True, False]


async def test_the_last_slots_are_for_callers_without_one() -> None:
    """Eight persons with twenty-one topics each take what they find, and others still come."""
    notifier = Notifier()
    persons = {f"p{number}": [f"p{number}-{topic}" for topic in range(21)] for number in range(8)}
    taken = [
        notifier.listener(topic, most=20, most_in_all=50, shares=frozenset({person}))
        for _ in range(3)
        for person, topics in persons.items()
        for topic in topics
    ]
    held = [listener for listener in taken if listener is not None]
    others = [notifier.listener(f"other-{number}", most=20, most_in_all=50) for number in range(30)]

    # Half of all places as they came, and from there on no person more than two.
    assert len(held) == 25 + 6 * 2
    assert sum(listener is not None for listener in others) == 50 - len(held)
    assert notifier.listener("late", most=20, most_in_all=50) is None
    left = others.pop(0)
    assert left is not None
    notifier.leave("other-0", left)
    assert notifier.listener("p0-20", most=20, most_in_all=50, shares=frozenset({"p0"})) is None
    assert notifier.listener("late", most=20, most_in_all=50) is not None


async def test_there_is_room_for_so_many_and_again_when_they_leave() -> None:
    notifier = Notifier()
    two = [notifier.listener("one", most=2, most_in_all=3) for _ in range(2)]
    assert None not in two
    assert notifier.listener("one", most=2, most_in_all=3) is None
    other = notifier.listener("other", most=2, most_in_all=3)
    assert other is not None
    assert notifier.listener("third", most=2, most_in_all=3) is None

    notifier.leave("other", other)
    # Who was forgotten has left too.
    two.pop()

    assert notifier.listener("one", most=2, most_in_all=3) is not None


async def test_when_it_closes_everybody_is_woken_and_nobody_comes() -> None:
    notifier = Notifier()
    listener = notifier.listener("one", most=1, most_in_all=1)
    assert listener is not None

    async def goes_home() -> None:
        await listener.wait(SECONDS)
        notifier.leave("one", listener)

    async with asyncio.timeout(SECONDS / 2):
        await asyncio.gather(goes_home(), notifier.close(SECONDS))
    assert notifier.listener("one", most=1, most_in_all=1) is None
