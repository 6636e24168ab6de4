"""Clients that sign in a loop, remember every acknowledged signature, and never give up a key before its answer.

They run on a thread of their own: processes must be started from the main thread (see launch.py), and a test kills
and starts some while the clients go on.
"""

import asyncio
import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import asyncpg
import httpx
import msgspec

from tests.fixtures.callers import ADDRESS, Agent, AsyncClient

PATIENCE_SECONDS = 60


class Acknowledged(msgspec.Struct, frozen=True):
    """A signature that a client was given."""

    agent: str
    tx_id: str
    raw: str


class Load:
    """The clients and what they were told."""

    def __init__(self, agents: Sequence[Agent], *, clients: int) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.acknowledged: dict[str, Acknowledged] = {}
        self.times: list[float] = []
        self.on_the_way: Counter[str] = Counter()
        self.strange: list[str] = []
        self._clients = clients
        self._progress = threading.Condition()
        self._stopping = False
        self._run_id = uuid.uuid4().hex[:8]

    def run(self) -> None:
        """Sign until told to stop; every key that was begun is brought to its answer."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        agents = itertools.cycle(self.agents.values())
        async with asyncio.TaskGroup() as group:
            for number in range(self._clients):
                group.create_task(self._client(number, next(agents)))

    async def _client(self, number: int, agent: Agent) -> None:
        async with AsyncClient(base_url=agent.base_url, headers=agent.headers, timeout=15) as http:
            for turn in itertools.count():
                if self._stopping or self.strange:
                    return
                await self._until_answered(http, agent.id, f"load-{self._run_id}-{number}-{turn}")

    async def _until_answered(self, http: AsyncClient, agent: str, key: str) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = await ask(http, agent, key)
            except httpx.TransportError as problem:
                self.on_the_way[type(problem).__name__] += 1
            else:
                if answer.status_code == 200:
                    self._note(key, acknowledgement(agent, answer))
                    return
                self.on_the_way[f"{answer.status_code} {answer.json()['data']['code']}"] += 1
                if answer.status_code != 503:
                    return self._wonder(f"{key}: {answer.status_code} {answer.text}")
            if time.monotonic() > give_up:
                return self._wonder(f"{key}: no answer within {PATIENCE_SECONDS} s")
            await asyncio.sleep(0.01)

    def _wonder(self, about: str) -> None:
        with self._progress:
            self.strange.append(about)
            self._progress.notify_all()

    def _note(self, key: str, answer: Acknowledged) -> None:
        with self._progress:
            self.acknowledged[key] = answer
            self.times.append(time.monotonic())
            self._progress.notify_all()

    def wait_for(self, more: int) -> None:
        """Wait until so many more signatures were acknowledged."""
        count = len(self.acknowledged) + more
        with self._progress:
            came = self._progress.wait_for(lambda: len(self.acknowledged) >= count or self.strange, PATIENCE_SECONDS)
        assert not self.strange
        assert came, f"no progress: {self.on_the_way}"

    def stop(self) -> None:
        """Begin no more keys."""
        self._stopping = True


@contextmanager
def load_on(agents: Sequence[Agent], *, clients: int = 8) -> Iterator[Load]:
    """Clients that run while the body does."""
    load = Load(agents, clients=clients)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        load.wait_for(clients)
        yield load
    finally:
        load.stop()
        thread.join()
    assert not load.strange, load.strange


async def ask(http: AsyncClient, agent: str, key: str) -> httpx.Response:
    """One unit under one key: every repetition is the same request."""
    order = {"to": ADDRESS, "value": "1", "broadcast": False}
    return await http.post(f"/vault/{agent}/sign", json=order, headers={"Idempotency-Key": key})


def acknowledgement(agent: str, answer: httpx.Response) -> Acknowledged:
    """Read what a client was given."""
    data = answer.json()["data"]
    return Acknowledged(agent, data["txId"], data["signedTransaction"])


async def lost_or_doubled(owner: asyncpg.Connection, load: Load) -> list[str]:
    """Signatures that were acknowledged and are not stored as such, and stored ones that nobody asked for."""
    rows = await owner.fetch(
        "SELECT id, agent_id, signed_bytes FROM transactions WHERE agent_id = ANY ($1) AND signature IS NOT NULL",
        list(load.agents),
    )
    stored = {Acknowledged(row["agent_id"], str(row["id"]), "0x" + row["signed_bytes"].hex()) for row in rows}
    given = set(load.acknowledged.values())
    return [f"lost: {one}" for one in given - stored] + [f"double: {one}" for one in stored - given]


async def replayed_differently(load: Load, *, most: int = 200) -> list[str]:
    """Ask again under keys that were answered: the same signature must come back, marked as a replay."""
    found = []
    clients = {i: AsyncClient(base_url=a.base_url, headers=a.headers, timeout=30) for i, a in load.agents.items()}
    step = max(1, len(load.acknowledged) // most)
    for key, before in list(load.acknowledged.items())[::step]:
        answer = await ask(clients[before.agent], before.agent, key)
        if answer.headers.get("Idempotency-Replayed") != "true" or acknowledgement(before.agent, answer) != before:
            found.append(f"{key}: {answer.status_code} {answer.text}")
    for client in clients.values():
        await client.aclose()
    return found
