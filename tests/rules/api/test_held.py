"""Work that one tenant may have the loop do at once: long answers count like long bodies, once known as long."""

import asyncio

from api.http.held import FREE_BYTES, MAX_KNOWN, MAX_LONG_AT_ONCE, Held
from custody.kit import turns

LONG = FREE_BYTES + 1


async def count_inside(held: Held, name: str, route: str, count: int, *, reads: bool = True) -> int:
    """Count how many of so many requests are worked on before any of them ends."""
    inside, end = 0, asyncio.Event()

    async def request() -> None:
        nonlocal inside
        async with held.turn(name, held.expect(name, route), reads=reads):
            inside += 1
            await end.wait()

    async with asyncio.TaskGroup() as requests:
        for _ in range(count):
            requests.create_task(request())
        # Each begins in its turn of the loop, as far as it gets.
        for _ in range(count + 1):
            await asyncio.sleep(0)
        at_once = inside
        end.set()
    assert inside == count
    return at_once


async def test_reads_that_answered_at_length_take_turns() -> None:
    held = Held()
    held.remember("tenant", "/intents", LONG)

    assert await count_inside(held, "tenant", "/intents", 9) == MAX_LONG_AT_ONCE


async def test_a_request_that_waits_for_a_node_lets_another_have_its_turn() -> None:
    held, answered, done = Held(), asyncio.Event(), list[str]()

    async def ask_node(name: str) -> None:
        async with held.turn("tenant", LONG, reads=False):
            async with asyncio.TaskGroup() as both:
                for _ in range(2):
                    both.create_task(wait(answered))
            done.append(name)
            # In its turn again, so that the others do not come between.
            await asyncio.sleep(0)
            done.append(name)

    async with asyncio.TaskGroup() as requests:
        for name in ("one", "two"):
            requests.create_task(ask_node(name))
        assert await asyncio.wait_for(count_inside(held, "tenant", "/agents", 3, reads=False), 5) == 3
        async with asyncio.timeout(5), held.turn("tenant", LONG, reads=False):
            answered.set()
            for _ in range(9):
                await asyncio.sleep(0)
            assert done == []

    assert done in (["one", "one", "two", "two"], ["two", "two", "one", "one"])


async def test_two_tasks_of_a_request_that_come_back_share_its_turn() -> None:
    held, first, second, other = Held(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def others() -> None:
        async with held.turn("tenant", LONG, reads=False):
            await other.wait()

    async with asyncio.timeout(5), held.turn("tenant", LONG, reads=False), asyncio.TaskGroup() as tasks:
        one, _ = tasks.create_task(wait(first)), tasks.create_task(wait(second))
        await asyncio.sleep(0)
        tasks.create_task(others())
        await asyncio.sleep(0)
        # Both have their answers while another request has the seat.
        first.set()
        second.set()
        await asyncio.sleep(0)
        other.set()
        await one


async def test_a_cancelled_request_ends_without_waiting_for_its_turn() -> None:
    held, never = Held(), asyncio.Event()

    async def request() -> None:
        async with held.turn("tenant", LONG, reads=False):
            await wait(never)

    waiting = asyncio.ensure_future(request())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with asyncio.timeout(5), held.turn("tenant", LONG, reads=False):
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()


async def test_a_long_body_does_not_wait_for_long_reads() -> None:
    held = Held()
    async with held.turn("tenant", LONG, reads=True):
        assert await count_inside(held, "tenant", "/intents", 1, reads=False) == 1


async def test_a_task_that_outlives_its_request_keeps_no_turn() -> None:
    held, answered = Held(), asyncio.Event()
    async with held.turn("tenant", LONG, reads=False):
        left = asyncio.create_task(wait(answered))
        await asyncio.sleep(0)
    answered.set()
    await left

    async with asyncio.timeout(5), held.turn("tenant", LONG, reads=False):
        pass


async def wait(answered: asyncio.Event) -> None:
    """Wait as a request does that asks a node."""
    async with turns.aside():
        await answered.wait()


async def test_other_reads_and_other_tenants_wait_for_nobody() -> None:
    held = Held()
    held.remember("tenant", "/intents", LONG)
    held.remember("tenant", "/agents", FREE_BYTES)

    assert await count_inside(held, "tenant", "/agents", 9) == 9
    assert await count_inside(held, "other", "/intents", 9) == 9


async def test_long_reads_of_tenants_take_turns_as_well_and_long_bodies_do_not() -> None:
    held = Held()

    async with held.turn("tenant", LONG, reads=True):
        assert await count_inside(held, "other", "/intents", 1, reads=False) == 1
        read = asyncio.ensure_future(_take(held))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not read.done()
    await read


async def test_a_read_that_never_ends_holds_up_others_for_a_moment_at_most() -> None:
    held = Held()

    async with held.turn("tenant", LONG, reads=True), asyncio.timeout(60), held.turn("other", LONG, reads=True):
        pass

    # Whose turn came late gives nobody else's back.
    async with held.turn("third", LONG, reads=True):
        pass


async def _take(held: Held) -> None:
    async with held.turn("other", LONG, reads=True):
        pass


def test_a_short_answer_does_not_make_a_long_read_forgotten() -> None:
    held = Held()
    held.remember("tenant", "/intents", LONG)
    held.remember("tenant", "/intents", 1)

    assert held.expect("tenant", "/intents") == LONG


def test_the_longest_known_is_forgotten_first() -> None:
    held = Held()
    for number in range(MAX_KNOWN + 1):
        held.remember(f"tenant-{number}", "/intents", LONG)

    assert held.expect("tenant-0", "/intents") == 0
    assert held.expect("tenant-1", "/intents") == LONG


async def test_first_reads_of_a_list_take_turns_until_it_is_known_to_be_short() -> None:
    held, going, most = Held(), 0, 0

    async def read(size: int) -> None:
        nonlocal going, most
        async with held.read("tenant", "/intents", listed=True):
            going += 1
            most = max(most, going)
            for _ in range(3):
                await asyncio.sleep(0)
            going -= 1
            held.remember("tenant", "/intents", size, listed=True)

    await asyncio.gather(*(read(1) for _ in range(9)))
    first, most = most, 0
    await asyncio.gather(*(read(1) for _ in range(9)))

    assert (first, most) == (MAX_LONG_AT_ONCE, 9)


async def test_a_first_read_that_never_ends_holds_up_nobody_for_long() -> None:
    held = Held()

    async with (
        held.read("tenant", "/intents", listed=True),
        asyncio.timeout(60),
        held.read("tenant", "/intents", listed=True),
        held.read("tenant", "/agents", listed=True),
        held.read("other", "/intents", listed=True),
        held.read("tenant", "/intents/{id}", listed=False),
    ):
        pass
