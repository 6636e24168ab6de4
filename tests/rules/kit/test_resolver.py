"""Names that resolve slowly delay only the callers that asked for them, however many."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from custody.kit.resolver import (
    LOOKUPS_KEPT_BACK,
    MAX_LOOKUPS,
    MAX_LOOKUPS_OF_GROUP,
    MAX_LOOKUPS_OF_ONE,
    MAX_NAMES_REMEMBERED,
    REMEMBERED_SECONDS,
    FairResolver,
)


class Names:
    """A resolver: names that begin with `slow` have no answer before `gate` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.under_way: list[str] = []
        self.asked: list[str] = []
        self.silent = False

    async def __call__(self, host: str, _port: int) -> list[str]:
        """The one address of every name, and none of those that begin with `no`."""
        self.asked.append(host)
        if host.startswith("slow") or self.silent:
            self.under_way.append(host)
            await self.gate.wait()
            self.under_way.remove(host)
        if host.startswith("none"):
            raise OSError("no such name")
        return [f"address of {host} {len(self.asked)}"]


@pytest.fixture
async def names() -> Names:
    return Names()


async def settle() -> None:
    """Every task that can go on has."""
    for _ in range(10):
        await asyncio.sleep(0)


async def begin(names: FairResolver, group: str, agents: int, each: int) -> list["asyncio.Future[Any]"]:
    """Look-ups of slow names, under way or waiting."""
    tasks = [
        asyncio.ensure_future(names.resolve(f"slow-{group}-{agent}-{number}", 443, group, agent))
        for agent in range(agents)
        for number in range(each)
    ]
    await settle()
    return tasks


async def end(tasks: list["asyncio.Future[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_who_asks_and_its_group_have_few_lookups_at_once(names: Names) -> None:
    resolver = FairResolver(names)
    tasks = await begin(resolver, "acme", 1, 100)
    assert len(names.under_way) == MAX_LOOKUPS_OF_ONE

    tasks += await begin(resolver, "acme", 50, 10)
    assert len(names.under_way) == MAX_LOOKUPS_OF_GROUP
    await end(tasks)


async def test_a_group_with_many_agents_keeps_nobody_else_waiting(names: Names) -> None:
    resolver = FairResolver(names)
    tasks = await begin(resolver, "hostile", 60, 4)

    assert await resolver.resolve("good", 443, "innocent", "agent")
    await end(tasks)


async def test_groups_together_leave_lookups_for_those_who_have_none(names: Names) -> None:
    resolver = FairResolver(names)
    tasks = [task for group in range(30) for task in await begin(resolver, f"hostile-{group}", 10, 4)]

    assert len(names.under_way) < MAX_LOOKUPS
    assert len(names.under_way) >= MAX_LOOKUPS - LOOKUPS_KEPT_BACK
    assert await resolver.resolve("good", 443, "innocent", "agent")
    await end(tasks)


async def test_lookups_that_are_given_up_count_until_they_have_an_answer(names: Names) -> None:
    resolver = FairResolver(names)
    for _ in range(20):
        await end(await begin(resolver, "hurried", 1, 20))
    assert len(names.under_way) == MAX_LOOKUPS_OF_ONE

    names.gate.set()
    await settle()
    assert await resolver.resolve("good", 443, "hurried", 0)


async def test_a_waiting_lookup_starts_as_soon_as_a_slot_is_free(names: Names) -> None:
    resolver = FairResolver(names)
    tasks = await begin(resolver, "acme", 3, 40)
    names.gate.set()

    assert len(await asyncio.gather(*tasks)) == 120
    assert len(set(names.asked)) == 120


async def test_agents_of_a_group_take_turns(names: Names) -> None:
    resolver = FairResolver(names)
    tasks = await begin(resolver, "acme", 20, 10)
    names.gate.set()
    await asyncio.gather(*tasks)

    # The first ones had four each at once; soon afterwards everybody had one.
    agents = [name.split("-")[2] for name in names.asked]
    assert len(set(agents[:MAX_LOOKUPS_OF_GROUP])) == MAX_LOOKUPS_OF_GROUP // MAX_LOOKUPS_OF_ONE
    assert len(set(agents[: 2 * MAX_LOOKUPS_OF_GROUP])) == 20


def clock_of(now: list[float]) -> Callable[[], float]:
    return lambda: now[0]


async def test_a_name_that_resolved_lately_is_remembered_while_nobody_tells(
    names: Names,
) -> None:
    now = [0.0]
    resolver = FairResolver(names, clock_of(now), patience_seconds=0.01)
    first = await resolver.resolve("good", 443, "innocent", "agent")
    second = await resolver.resolve("good", 443, "innocent", "agent")
    assert first != second
    names.silent = True
    tasks = await begin(resolver, "innocent", 60, 4)

    assert await resolver.resolve("good", 443, "innocent", "agent") == second
    # Nobody else's memory is asked, and not for ever.
    other = asyncio.ensure_future(resolver.resolve("good", 443, "other", "agent"))
    now[0] = REMEMBERED_SECONDS + 1
    late = asyncio.ensure_future(resolver.resolve("good", 443, "innocent", "agent"))
    await asyncio.wait([other, late], timeout=0.1)
    assert not other.done()
    assert not late.done()
    await end([*tasks, other, late])


async def test_an_answer_that_comes_is_the_one_that_counts(names: Names) -> None:
    resolver = FairResolver(names)
    for _ in range(2):
        with pytest.raises(OSError, match="no such name"):
            await resolver.resolve("none", 443, "acme", "agent")

    assert names.asked == ["none", "none"]


async def test_a_group_that_asks_for_many_names_forgets_only_its_own(
    names: Names,
) -> None:
    resolver = FairResolver(names, patience_seconds=0.01)
    await resolver.resolve("good", 443, "innocent", "agent")
    for number in range(MAX_NAMES_REMEMBERED + 1):
        await resolver.resolve(f"name-{number}" if number else "first", 443, "acme", "agent")
    names.silent = True

    assert await resolver.resolve("good", 443, "innocent", "agent")
    assert await resolver.resolve("name-1", 443, "acme", "agent")
    forgotten = asyncio.ensure_future(resolver.resolve("first", 443, "acme", "agent"))
    await asyncio.wait([forgotten], timeout=0.1)
    assert not forgotten.done()
    await end([forgotten])
