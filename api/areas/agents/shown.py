"""Agents with the addresses that people fund: shown only when the signer says that it has their keys.

An address is a row that an attacker who writes the database can change; funding it would fund a stranger's wallet.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from api.areas.agents import store
from api.areas.agents.types import AgentQuery
from custody.kit import ids
from custody.kit.callers import Origin
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.agents import MAX_ADDRESSES, Agent, ClaimedAddresses, HaveKeys
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered


async def get(ports: Ports, ref: AgentRef) -> Agent:
    """One agent; AgentAbsent if there is none, KeyTampered if an address is not its own."""
    agent = await ports.agents_read.get(partial(store.by_id, ports.pool), ref.tenant, ref.agent)
    if agent is None:
        raise AgentAbsent
    await vouch_for(ports, ref.tenant, [agent])
    return agent


async def all_of(ports: Ports, tenant: str, query: AgentQuery) -> Listed[Agent]:
    """A tenant's agents, newest first."""
    found = await store.all_of(ports.pool, tenant, query)
    await vouch_for(ports, tenant, found.rows)
    return found


async def vouch_for(ports: Ports, tenant: str, agents: Sequence[Agent]) -> None:
    """Ask the signer whether it has the keys of the wallets of these agents; KeyTampered if not."""
    claimed = [ClaimedAddresses(one.id, one.wallet_addresses.all) for one in agents]
    await vouch(ports, tenant, without_proof(ports, tenant, claimed))


def without_proof(ports: Ports, tenant: str, claimed: Iterable[ClaimedAddresses]) -> list[ClaimedAddresses]:
    """Those for which the signer has not said so yet."""
    return [one for one in claimed if (tenant, one) not in ports.known_addresses]


async def vouch(ports: Ports, tenant: str, unknown: Sequence[ClaimedAddresses]) -> None:
    """Ask the signer whether it has the keys of these addresses; KeyTampered if not."""
    # A few at a time: for each of them the signer opens two keys, and others want to sign in between.
    for start in range(0, len(unknown), MAX_ADDRESSES):
        part = list(unknown[start : start + MAX_ADDRESSES])
        others = await ports.workers.tell(HaveKeys(tenant, part), Origin(ids.new_uuid()))
        for one in part:
            if one.agent not in others:
                ports.known_addresses.put((tenant, one), True)
        if others and await _still_there(ports, tenant, others):
            raise KeyTampered


async def _still_there(ports: Ports, tenant: str, agents: list[str]) -> bool:
    """Say whether one of them exists: one that was deleted meanwhile has no keys either, and is no forgery."""
    return any([await store.exists(ports.pool, AgentRef(tenant, agent)) for agent in agents])
