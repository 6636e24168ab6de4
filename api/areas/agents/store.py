"""Queries of agents."""

from typing import Any, Final

import msgspec

from api.areas.agents.types import AgentQuery
from custody.chains.built_in import WALLETS
from custody.kit import clock
from custody.kit.db import Pool
from custody.kit.paging import AROUND, AS_JSON, Listed, fitting, page_of, reach
from custody.kit.refs import AgentRef
from custody.protocol.signer.agents import Agent, PreviousWallet, WalletAddresses
from custody.protocol.signer.order_refusals import AgentAbsent

# The function gives the rows in their order; the count comes with each. An answer has an address again by itself.
_PAGE: Final = fitting(
    "SELECT * FROM agents_page($1, $2, $3, $4, $5) WITH ORDINALITY", "ordinality", f"{AS_JSON} + {AROUND}"
)
_decode_addresses = msgspec.json.Decoder(dict[str, str]).decode
_decode_previous = msgspec.json.Decoder(list[tuple[str, str]]).decode


async def get(pool: Pool, ref: AgentRef) -> Agent:
    """One agent, in one round trip; AgentAbsent if there is none."""
    row = await pool.fetchrow("SELECT * FROM agent_get($1, $2)", ref.tenant, ref.agent)
    if row is None:
        raise AgentAbsent
    return _agent(ref.tenant, row)


async def by_id(pool: Pool, tenant: str, agents: list[str]) -> dict[str, Agent]:
    """Those of these agents that there are, by their ids, in one round trip."""
    rows = await pool.fetch("SELECT * FROM agents_named($1, $2)", tenant, agents)
    return {row["id"]: _agent(tenant, row) for row in rows}


async def exists(pool: Pool, ref: AgentRef) -> bool:
    """Say whether there is such an agent."""
    return await pool.fetchrow("SELECT * FROM agent_get($1, $2)", ref.tenant, ref.agent) is not None


async def token_standing(pool: Pool, ref: AgentRef) -> tuple[str, int] | None:
    """The incarnation and epoch that a living token of this agent names; None if there is no such agent."""
    row = await pool.fetchrow("SELECT incarnation, token_epoch FROM agent_get($1, $2)", ref.tenant, ref.agent)
    return None if row is None else (str(row["incarnation"]), row["token_epoch"])


async def all_of(pool: Pool, tenant: str, query: AgentQuery) -> Listed[Agent]:
    """A tenant's agents, newest first, in one round trip."""
    to_count = reach(query.offset, query.limit)
    rows = await pool.fetch(
        _PAGE,
        tenant,
        query.platform_id,
        query.limit,
        query.offset,
        to_count.most + 1,
    )
    total = to_count.total(rows[0]["total"])
    return page_of([_agent(tenant, row) for row in rows if row["id"] is not None], total)


def _addresses(text: str | None) -> WalletAddresses:
    # A row that is gone leaves an address that is not that of its key; who checks it says so.
    known = _decode_addresses(text or "{}")
    return WalletAddresses(**{family: known.get(family, "") for family in WALLETS})


def _previous(text: str | None) -> list[PreviousWallet]:
    return [PreviousWallet(*one) for one in _decode_previous(text or "[]")]


def _agent(tenant: str, row: Any) -> Agent:
    return Agent(
        id=row["id"],
        name=row["name"],
        display_name=row["display_name"],
        platform_id=row["platform_id"],
        erc8004_token_id=row["erc8004_token_id"],
        tenant_id=tenant,
        wallet_addresses=_addresses(row["wallets"]),
        created_at=clock.iso(row["created_at"]),
        frozen_at=clock.iso(row["frozen_at"]) if row["frozen_at"] else None,
        frozen_reason=row["frozen_reason"],
        previous_wallets=_previous(row["previous"]),
    )
