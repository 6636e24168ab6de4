"""Many clients against one limit of exactly 100 units: directly, through approvals, and both at once. Promise P1."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import asyncpg
import httpx
import msgspec

from tests.fixtures.callers import Agent, AsyncClient, Tenant, rule
from tests.fixtures.server import Service
from tests.promises.oracle import Limit, violations

UNITS = 100
LIMIT = rule("spending-limit", maxPerDay=str(UNITS))
CHAIN = 137
COIN = f"evm:{CHAIN}:native"
LIMIT_OF_CHAIN = rule("spending-limit", maxPerDay=str(UNITS), asset=COIN)
Request = tuple[str, dict[str, Any]]
Raced = tuple[list[Agent], list[httpx.Response]]
_addresses = itertools.count(0x1000)


class Clients:
    """So many clients, spread over the apis; each waits for its answer before it asks again."""

    def __init__(self, services: Sequence[Service], count: int) -> None:
        self._urls = [service.url for service in services]
        self._count = count

    async def do(self, caller: Agent | Tenant, requests: Sequence[Request]) -> list[httpx.Response]:
        """Send every request once; the answers as they came."""
        waiting, answers = iter(requests), []

        async def client(url: str) -> None:
            for path, body in waiting:
                answers.append(await http.post(url + path, json=body))

        urls = itertools.islice(itertools.cycle(self._urls), self._count)
        async with (
            AsyncClient(headers=caller.headers, timeout=60, limits=httpx.Limits(max_connections=None)) as http,
            asyncio.TaskGroup() as group,
        ):
            for url in urls:
                group.create_task(client(url))
        return answers


async def plain(clients: Clients, tenant: Tenant) -> Raced:
    """130 orders of one unit."""
    agent = tenant.agent(LIMIT)
    return [agent], await clients.do(agent, [_order(agent) for _ in range(130)])


async def approved(clients: Clients, tenant: Tenant) -> Raced:
    """120 orders of one unit that a person must approve, approved all at once."""
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="0"))
    queued = await clients.do(agent, [_order(agent) for _ in range(120)])
    return [agent], await clients.do(tenant, _approvals(queued))


async def mixed(clients: Clients, tenant: Tenant) -> Raced:
    """40 approvals of two units among 100 orders of one: of those one always fits until all is spent."""
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="1"))
    queued = await clients.do(agent, [_order(agent, 2) for _ in range(40)])
    answers = await asyncio.gather(
        clients.do(tenant, _approvals(queued)), clients.do(agent, [_order(agent) for _ in range(100)])
    )
    return [agent], [*itertools.chain(*answers)]


async def chains(clients: Clients, tenant: Tenant) -> Raced:
    """130 orders on one chain, whose coin is limited, beside 100 on another; both chains' limit together just fits."""
    agent = tenant.agent(LIMIT_OF_CHAIN, rule("spending-limit", maxPerDay=str(2 * UNITS)))
    answers = await asyncio.gather(
        clients.do(agent, [_order(agent, chainId=CHAIN) for _ in range(130)]),
        clients.do(agent, [_order(agent, chainId=1) for _ in range(100)]),
    )
    late = await clients.do(agent, [_order(agent, chainId=1) for _ in range(4)])
    return [agent], [*itertools.chain(*answers), *late]


async def pairs(clients: Clients, tenant: Tenant) -> Raced:
    """Ten agents, each asked twice at once for 60 of its 100 units; the first five are told their nonces."""
    return await _pairs(clients, [tenant.agent(LIMIT) for _ in range(10)])


async def pairs_of_chain(clients: Clients, tenant: Tenant) -> Raced:
    """The same, limited in the coin of one chain."""
    return await _pairs(clients, [tenant.agent(LIMIT_OF_CHAIN) for _ in range(10)], chainId=CHAIN)


async def _pairs(clients: Clients, agents: list[Agent], **fields: Any) -> Raced:
    told = [({"nonce": 0}, {"nonce": 1}) if number < 5 else ({}, {}) for number in range(10)]
    answers: list[httpx.Response] = []
    # One agent after the other: those who meet stand still, and would hold up all that is written with them.
    for agent, nonces in zip(agents, told, strict=True):
        answers += await clients.do(agent, [_order(agent, 60, **nonce, **fields) for nonce in nonces])
    return agents, answers


WAYS = {
    "plain": plain,
    "approved": approved,
    "mixed": mixed,
    "chains": chains,
    "pairs": pairs,
    "pairs of a chain": pairs_of_chain,
}
# What each way may sign, where it is not so many units of all coins together.
MOST = {"chains": {COIN: UNITS, "evm:native": 2 * UNITS}, "pairs of a chain": {COIN: UNITS}}


class Race(msgspec.Struct, frozen=True):
    """The result of one race: what each agent signed, how the clients were answered, what the oracle says."""

    units: list[int]
    outcomes: Counter[str]
    violations: list[str]

    def __str__(self) -> str:
        return f"{self.units} of {UNITS} units signed, answers {dict(sorted(self.outcomes.items()))}"


async def race(way: str, services: Sequence[Service], tenant: Tenant, clients: int, owner: asyncpg.Connection) -> Race:
    """One race, judged by the tables alone."""
    agents, answers = await WAYS[way](Clients(services, clients), tenant)
    units = await owner.fetch(
        "SELECT sum(value) FROM transactions WHERE tenant_id = $1 AND signature IS NOT NULL GROUP BY agent_id",
        tenant.id,
    )
    most = MOST.get(way, {"evm:native": UNITS})
    limits = [Limit(agent.id, units, asset) for agent in agents for asset, units in most.items()]
    found = await violations(owner, [tenant.id], limits)
    return Race([int(row[0]) for row in units], Counter(str(answer.status_code) for answer in answers), found)


def _order(agent: Agent, value: int = 1, **fields: Any) -> Request:
    # Each to another address: what shares a nonce would otherwise be the same transaction.
    to = f"0x{next(_addresses):040x}"
    return f"/vault/{agent.id}/sign", {"to": to, "value": str(value), "broadcast": False, **fields}


def _approvals(queued: Sequence[httpx.Response]) -> list[Request]:
    assert {answer.status_code for answer in queued} == {202}
    return [(f"/approvals/{answer.json()['data']['approvalId']}/approve", {}) for answer in queued]
