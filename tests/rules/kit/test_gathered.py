"""Reads of one tenant go together while earlier ones are under way, and are each other's business in nothing else."""

import asyncio
from collections.abc import Mapping

import pytest

from custody.kit.gathered import AT_ONCE, MOST, Gathered


class Table:
    """Rows whose reading takes until it is let go; a statement with `bad` in it fails."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[str]]] = []
        self.rows: dict[str, str] = {}
        self._under_way: list[asyncio.Future[None]] = []

    async def read(self, tenant: str, names: list[str]) -> Mapping[str, str]:
        """The rows as they are when the statement ends."""
        self.statements.append((tenant, names))
        self._under_way.append(asyncio.get_running_loop().create_future())
        await self._under_way[-1]
        if "bad" in names:
            raise ConnectionError(names)
        if "slow" in names:
            raise TimeoutError
        return {name: self.rows.get(name, name.upper()) for name in names if name != "absent"}

    async def end(self, *, everything: bool = False) -> None:
        """Let what is under way come to its end; with `everything`, also what begins after it."""
        while self._under_way:
            under_way, self._under_way = self._under_way, []
            for one in under_way:
                one.set_result(None)
            for _ in range(5):
                await asyncio.sleep(0)
            if not everything:
                return


async def ask(gathered: Gathered[str], table: Table, *names: str, tenant: str = "t") -> list[asyncio.Task[str | None]]:
    tasks = [asyncio.create_task(gathered.get(table.read, tenant, name)) for name in names]
    await asyncio.sleep(0)
    return tasks


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def gathering() -> Gathered[str]:
    return Gathered()


async def test_the_first_reads_wait_for_nobody(gathering: Gathered[str], table: Table) -> None:
    tasks = await ask(gathering, table, "a", "b")

    assert table.statements == [("t", ["a"]), ("t", ["b"])]
    await table.end()
    assert await asyncio.gather(*tasks) == ["A", "B"]


async def test_reads_that_come_meanwhile_go_together_next(gathering: Gathered[str], table: Table) -> None:
    tasks = await ask(gathering, table, "a", "b", "c", "d", "absent", "c")
    assert len(table.statements) == AT_ONCE

    await table.end(everything=True)

    assert table.statements[AT_ONCE:] == [("t", ["c", "d", "absent"])]
    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D", None, "C"]


async def test_no_statement_is_longer_than_the_bound(gathering: Gathered[str], table: Table) -> None:
    names = [f"n{number}" for number in range(AT_ONCE + 3 * MOST + 1)]
    tasks = await ask(gathering, table, *names)

    await table.end(everything=True)

    assert sorted(len(names) for _, names in table.statements) == [1] * (AT_ONCE + 1) + [MOST] * 3
    assert await asyncio.gather(*tasks) == [name.upper() for name in names]


async def test_another_tenants_reads_are_their_own(gathering: Gathered[str], table: Table) -> None:
    await ask(gathering, table, "a", "b", "c")
    [other] = await ask(gathering, table, "c", tenant="u")

    assert table.statements[-1] == ("u", ["c"])
    await table.end()
    assert await other == "C"


async def test_one_that_fails_fails_nobody_else(gathering: Gathered[str], table: Table) -> None:
    tasks = await ask(gathering, table, "a", "b", "c", "bad", "d")

    await table.end(everything=True)

    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [*found[:3], found[4]] == ["A", "B", "C", "D"]
    assert isinstance(found[3], ConnectionError)
    assert ("t", ["bad"]) in table.statements


async def test_a_database_that_does_not_answer_in_time_is_not_asked_again(
    gathering: Gathered[str], table: Table
) -> None:
    tasks = await ask(gathering, table, "a", "b", "c", "slow")

    await table.end(everything=True)

    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found] == [str, str, TimeoutError, TimeoutError]
    assert len(table.statements) == AT_ONCE + 1


async def test_a_caller_who_leaves_takes_nobodys_answer_along(gathering: Gathered[str], table: Table) -> None:
    tasks = await ask(gathering, table, "a", "b", "c", "d")
    tasks[0].cancel()
    tasks[2].cancel()
    await asyncio.sleep(0)

    await table.end(everything=True)

    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [found[1], found[3]] == ["B", "D"]
    assert table.statements[AT_ONCE:] == [("t", ["d"])]


async def test_a_row_is_read_after_it_was_asked_for(gathering: Gathered[str], table: Table) -> None:
    first = await ask(gathering, table, "a", "a")
    table.rows["a"] = "changed"
    [later] = await ask(gathering, table, "a")

    assert len(table.statements) == AT_ONCE
    await table.end(everything=True)

    assert (await later, len(table.statements)) == ("changed", AT_ONCE + 1)
    await asyncio.gather(*first)
