"""Many clients against one limit of exactly 100 units: directly, through approvals, and both at once. Promise P1."""

import asyncio
import itertools
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

import asyncpg
import httpx
import msgspec

from tests.fixtures.callers import Agent, AsyncClient, Tenant, rule
from tests.fixtures.server import Service
from tests.promises.oracle import Limit, violations
from tests.routes.orders import TOKEN_CONTRACT

UNITS = 100
LIMIT = rule("spending-limit", maxPerDay=str(UNITS))
CHAIN = 137
COIN = f"evm:{CHAIN}:native"
LIMIT_OF_CHAIN = rule("spending-limit", maxPerDay=str(UNITS), asset=COIN)
TOKEN = f"evm:10:{TOKEN_CONTRACT}"
# In millionths of a dollar for each smallest unit.
DOLLARS = {"evm:10:native": 1, "evm:8453:native": 2, TOKEN: 1}
LIMIT_FOR_LIFE = rule("spending-limit", maxTotal=str(UNITS))
LIMIT_IN_DOLLARS = rule("spending-limit", maxPerDay=str(UNITS), asset="usd")
# How often a client repeats what nobody knows yet. On a busy machine the last of many waits longer for its agent's turn
# than the api waits for the signer (`DEADLINE_SECONDS`): it is told 503, and the same key finds what became of it.
TRIES = 20
Request = tuple[str, dict[str, Any]]
Raced = tuple[list[Agent], list[httpx.Response]]
_addresses = itertools.count(0x1000)


class Clients:
    """So many clients, spread over the apis; each waits for its answer before it asks again."""

    def __init__(self, services: Sequence[Service], count: int) -> None:
        self._urls = [service.url for service in services]
        self._count = count
        # How often nobody knew in time what became of a request.
        self.repeated = 0

    async def do(self, caller: Agent | Tenant, requests: Sequence[Request]) -> list[httpx.Response]:
        """Have every request answered once; the answers as they came."""
        waiting, answers = iter(requests), []

        async def client(url: str) -> None:
            for path, body in waiting:
                key = {"Idempotency-Key": uuid.uuid4().hex}
                for _ in range(TRIES):
                    answer = await http.post(url + path, json=body, headers=key)
                    if answer.status_code != 503:
                        break
                    self.repeated += 1
                answers.append(answer)

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
    return [agent], await clients.do(agent, [order_of(agent) for _ in range(130)])


async def race_approved(clients: Clients, tenant: Tenant) -> Raced:
    """120 orders of one unit that a person must approve, approved all at once."""
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="0"))
    queued = await clients.do(agent, [order_of(agent) for _ in range(120)])
    return [agent], await clients.do(tenant, _approvals(queued))


async def race_mixed(clients: Clients, tenant: Tenant) -> Raced:
    """40 approvals of two units among 100 orders of one: of those one always fits until all is spent."""
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="1"))
    queued = await clients.do(agent, [order_of(agent, 2) for _ in range(40)])
    answers = await asyncio.gather(
        clients.do(tenant, _approvals(queued)), clients.do(agent, [order_of(agent) for _ in range(100)])
    )
    return [agent], [*itertools.chain(*answers)]


async def chains(clients: Clients, tenant: Tenant) -> Raced:
    """130 orders on one chain, whose coin is limited, beside 100 on another; both chains' limit together just fits."""
    agent = tenant.agent(LIMIT_OF_CHAIN, rule("spending-limit", maxPerDay=str(2 * UNITS)))
    answers = await asyncio.gather(
        clients.do(agent, [order_of(agent, chainId=CHAIN) for _ in range(130)]),
        clients.do(agent, [order_of(agent, chainId=1) for _ in range(100)]),
    )
    late = await clients.do(agent, [order_of(agent, chainId=1) for _ in range(4)])
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
        answers += await clients.do(agent, [order_of(agent, 60, **nonce, **fields) for nonce in nonces])
    return agents, answers


async def race_dollars(clients: Clients, tenant: Tenant) -> Raced:
    """Approvals worth four among orders worth one and two, on two chains: of those worth one there are always more."""
    agent = tenant.agent(LIMIT_IN_DOLLARS, rule("auto-approve-threshold", threshold="2", asset="usd"))
    queued = await clients.do(agent, [order_of(agent, 2, chainId=8453) for _ in range(15)])
    answers = await asyncio.gather(
        clients.do(tenant, _approvals(queued)),
        clients.do(agent, [order_of(agent, chainId=8453) for _ in range(20)]),
        clients.do(agent, [order_of(agent, chainId=10) for _ in range(110)]),
    )
    return [agent], [*itertools.chain(*answers)]


async def pairs_for_life(clients: Clients, tenant: Tenant) -> Raced:
    """The pairs, limited in all that they ever spend."""
    return await _pairs(clients, [tenant.agent(LIMIT_FOR_LIFE) for _ in range(10)])


async def pairs_of_dollars(clients: Clients, tenant: Tenant) -> Raced:
    """The pairs, limited in dollars."""
    return await _pairs(clients, [tenant.agent(LIMIT_IN_DOLLARS) for _ in range(10)], chainId=10)


WAYS = {
    "plain": plain,
    "approved": race_approved,
    "mixed": race_mixed,
    "chains": chains,
    "pairs": pairs,
    "pairs of a chain": pairs_of_chain,
    "dollars": race_dollars,
    "pairs of dollars": pairs_of_dollars,
    "pairs for life": pairs_for_life,
}
# What each way may sign, where it is not so many units of all coins together.
MOST = {"chains": {COIN: UNITS, "evm:native": 2 * UNITS}, "pairs of a chain": {COIN: UNITS}} | {
    way: {"usd": UNITS} for way in ("dollars", "pairs of dollars")
}


class Race(msgspec.Struct, frozen=True):
    """The result of one race: what each agent signed, how the clients were answered, what the oracle says."""

    units: list[int]
    outcomes: Counter[str]
    violations: list[str]
    repeated: int

    def __str__(self) -> str:
        return f"{self.units} of {UNITS} units signed, answers {dict(sorted(self.outcomes.items()))}"


async def race(way: str, services: Sequence[Service], tenant: Tenant, clients: int, owner: asyncpg.Connection) -> Race:
    """One race, judged by the tables alone."""
    asking = Clients(services, clients)
    agents, answers = await WAYS[way](asking, tenant)
    units = await owner.fetch(
        "SELECT sum(value * CASE chain_id WHEN 8453 THEN 2 ELSE 1 END) FROM transactions WHERE tenant_id = $1 "
        "AND signature IS NOT NULL GROUP BY agent_id",
        tenant.id,
    )
    most = MOST.get(way, {"evm:native": UNITS})
    limits = [Limit(agent.id, units, asset) for agent in agents for asset, units in most.items()]
    found = await violations(owner, [tenant.id], limits, DOLLARS)
    outcomes = Counter(str(answer.status_code) for answer in answers)
    return Race([int(row[0]) for row in units], outcomes, found, asking.repeated)


def order_of(agent: Agent, value: int = 1, **fields: Any) -> Request:
    """Ask for an order of so many units."""
    # Each to another address: what shares a nonce would otherwise be the same transaction.
    to = f"0x{next(_addresses):040x}"
    return f"/vault/{agent.id}/sign", {"to": to, "value": str(value), "broadcast": False, **fields}


def _approvals(queued: Sequence[httpx.Response]) -> list[Request]:
    assert {answer.status_code for answer in queued} == {202}
    return [(f"/approvals/{answer.json()['data']['approvalId']}/approve", {}) for answer in queued]
