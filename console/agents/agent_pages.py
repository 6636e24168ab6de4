"""Asks for all agents of the tenant, what waits of each, and the tenant itself, in a bounded number of requests."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.entry.person import Person
from console.queue.queue import Queue
from console.wire.api_client import ApiClient
from console.wire.failures import Away, Failure, SignedOut
from console.wire.shapes_agents import Tenant
from words.shapes import Agent, Approval

_PAGE: Final = 1_000
_PAGES: Final = 10
_APPROVALS: Final = 200


@dataclass(frozen=True)
class AllAgents:
    """The agents, newest first, `total` of which there are; approvals by agent, all of them if `waiting_complete`."""

    agents: Sequence[Agent]
    total: int
    waiting: Counter[str]
    waiting_complete: bool
    tenant: Tenant | None


async def all_agents(client: ApiClient, person: Person | None, queue: Queue) -> AllAgents:
    """Ask for all of it, but for what the queue knows. Raises what asking for the agents raises; the rest may miss."""
    agents, total = await _agents(client)
    # The tenant key does not name its tenant; any of its agents does.
    tenant_id = (person.tenant if person else None) or next((agent.tenant_id for agent in agents), None)
    waiting, tenant = await asyncio.gather(_waiting(client, queue), _tenant(client, tenant_id))
    found, complete = waiting
    return AllAgents(agents, total, found, complete, tenant)


async def _agents(client: ApiClient) -> tuple[list[Agent], int]:
    found: dict[str, Agent] = {}
    for place in range(_PAGES):
        page = await client.get_page("/agents", Agent, limit=_PAGE, offset=place * _PAGE)
        # An agent that is made meanwhile pushes others to the next page: each is kept once.
        found |= {agent.id: agent for agent in page.items}
        if len(page.items) < _PAGE:
            return list(found.values()), len(found)
    return list(found.values()), max(page.total, len(found))


async def _waiting(client: ApiClient, queue: Queue) -> tuple[Counter[str], bool]:
    if queue.whole and not queue.differs:
        return Counter(item.approval.agent_id for item in queue.items.values()), True
    try:
        page = await client.get_page("/approvals", Approval, status="pending", limit=_APPROVALS)
    except (SignedOut, Away):
        raise
    except Failure:
        return Counter(), False
    return Counter(item.agent_id for item in page.items), page.total <= len(page.items)


async def _tenant(client: ApiClient, tenant_id: str | None) -> Tenant | None:
    try:
        return await client.get(f"/tenants/{tenant_id}", Tenant) if tenant_id else None
    except (SignedOut, Away):
        raise
    except Failure:
        return None
