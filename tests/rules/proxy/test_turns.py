"""Fair turns: an agent with many connections waits as often as one with a single one. No time passes here."""

import asyncio
from collections import Counter

from proxy_addon.turns import MAX_TURN_SECONDS, Turns


class Busy:
    """A loop's time that passes only by work, and who worked in which order."""

    def __init__(self):
        self.now, self.order = 0.0, []
        self.turns = Turns(lambda: self.now)

    async def work(self, tenant, agent, *, goes=1, seconds=MAX_TURN_SECONDS):
        """A connection that does so many goes, one after the other."""
        for _ in range(goes):
            await self.turns.do((tenant, agent), lambda: self._note_work(tenant, agent, seconds))

    def _note_work(self, tenant, agent, seconds):
        self.now += seconds
        self.order.append((tenant, agent))


def in_line(work):
    """A task that has begun, and waits if it must."""
    return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)


async def test_work_without_a_queue_runs_at_once():
    busy = Busy()
    done = []

    await busy.turns.do(("t", "a"), lambda: done.append(1))

    assert done == [1]


async def test_one_connection_of_an_agent_gets_what_a_hundred_of_another_get():
    busy = Busy()
    many = [busy.work("t", "many", goes=20) for _ in range(128)]
    await asyncio.gather(*many, busy.work("t", "one", goes=20))

    first = busy.order[: busy.order.index(("t", "one")) + 1]
    last = len(busy.order) - busy.order[::-1].index(("t", "one"))
    # The first go comes when all have just begun to wait; then they alternate.
    assert len(first) <= 3
    assert Counter(busy.order[:last])[("t", "many")] <= 2 * 20 + 2


async def test_a_tenant_with_many_agents_gets_what_a_tenant_with_one_gets():
    busy = Busy()
    many = [busy.work("crowd", f"agent-{number}", goes=20) for number in range(50)]
    await asyncio.gather(*many, busy.work("single", "agent", goes=20))

    last = len(busy.order) - busy.order[::-1].index(("single", "agent"))
    # Who comes back for the next go finds one of the others before it.
    assert last <= 3 * 20 + 4


async def test_agents_of_a_tenant_share_evenly():
    busy = Busy()
    await asyncio.gather(*(busy.work("t", agent, goes=10) for agent in "abcde" for _ in range(4)))

    shares = Counter(agent for _, agent in busy.order[:100])
    assert all(19 <= shares[agent] <= 21 for agent in "abcde")


async def test_shares_are_of_time_and_not_of_goes():
    busy = Busy()
    await asyncio.gather(
        *(busy.work("t", "heavy", goes=10) for _ in range(10)),
        *(busy.work("t", "light", goes=10, seconds=MAX_TURN_SECONDS / 10) for _ in range(10)),
    )

    light = len(busy.order) - busy.order[::-1].index(("t", "light"))
    # Ten goes of the one take as long as one of the other; by goes it would be all hundred.
    assert Counter(busy.order[:light])[("t", "heavy")] <= 30


async def test_the_loop_gets_its_turn_while_others_work():
    busy, ticks = Busy(), 0
    working = [asyncio.ensure_future(busy.work("t", "a", goes=100)) for _ in range(10)]
    while not all(work.done() for work in working):
        ticks += 1
        await asyncio.sleep(0)

    # One for each go but the first few.
    assert ticks >= 990


async def test_work_cancelled_while_queued_does_not_run():
    busy = Busy()
    await busy.work("t", "before")
    waiting = in_line(busy.work("t", "gone"))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await busy.work("t", "next")

    assert busy.order == [("t", "before"), ("t", "next")]


async def test_work_that_cancels_its_own_connection_stops_nobody():
    busy = Busy()
    tasks = {}
    await busy.work("t", "before")

    def cancel():
        tasks["own"].cancel()

    tasks["own"] = in_line(busy.turns.do(("t", "a"), cancel))
    tasks["next"] = in_line(busy.work("t", "b"))
    await asyncio.gather(*tasks.values(), return_exceptions=True)

    assert tasks["own"].cancelled()
    assert busy.order == [("t", "before"), ("t", "b")]
