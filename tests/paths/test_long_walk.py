"""A walk through 5,000 transactions while more are signed: none comes twice, none is missing."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.people import member
from tests.fixtures.server import Service

AGENTS, EACH = 10, 200


def walk(client: httpx.Client, path: str, rows: str | None, **query: Any) -> list[str]:
    """The id of every row, page by page."""
    found: list[str] = []
    while True:
        answer = client.get(path, params=query).json()
        page = answer["data"] if rows is None else answer["data"][rows]
        place = answer if rows is None else answer["data"]
        found += [row["id"] for row in page]
        query["cursor"] = place["nextCursor"] if rows != "data" else place["pagination"]["nextCursor"]
        if query["cursor"] is None:
            return found


@contextmanager
def signing(agents: list[Agent]) -> Iterator[list[str]]:
    """Meanwhile each of them signs, one order after the other."""
    stop = threading.Event()
    made: list[str] = []

    def sign(agent: Agent) -> None:
        while not stop.is_set():
            answer = agent.sign()
            assert answer.status_code == 200, answer.text
            made.append(answer.json()["data"]["txId"])

    with ThreadPoolExecutor(len(agents)) as pool:
        running = [pool.submit(sign, agent) for agent in agents]
        try:
            yield made
        finally:
            stop.set()
        for one in running:
            one.result()


@pytest.mark.long
def test_two_thousand_are_read_while_more_are_signed(service: Service, tenant: Tenant) -> None:
    agents = [tenant.agent() for _ in range(AGENTS)]

    def fill(agent: Agent) -> list[str]:
        return [agent.sign().json()["data"]["txId"] for _ in range(EACH)]

    with ThreadPoolExecutor(AGENTS) as pool:
        before = {agent.id: ids for agent, ids in zip(agents, pool.map(fill, agents), strict=True)}
    everything = {tx_id for ids in before.values() for tx_id in ids}
    assert len(everything) == AGENTS * EACH

    busy = agents[0]
    with closing(member(service, tenant, "owner", mfa=True)) as owner, signing(agents[:3]) as made:
        of_all = walk(tenant, "/transactions", "transactions", limit=100)
        of_one = walk(busy, f"/vault/{busy.id}/history", None, limit=20)
        searched = walk(busy, f"/vault/{busy.id}/transactions", "transactions", limit=20, status="signed")
        rows = walk(owner, "/audit/events", "data", limit=200, action="tx.signed")

    assert made, "nothing was signed meanwhile"
    for found, least in ((of_all, everything), (of_one, set(before[busy.id])), (searched, set(before[busy.id]))):
        assert len(found) == len(set(found))
        assert least <= set(found)
        assert set(found) <= everything | set(made)
    assert len(rows) == len(set(rows)) >= AGENTS * EACH
