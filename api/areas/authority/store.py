"""Queries of signers and key quorums. Credentials are out of this process' reach."""

from typing import Any

from api.areas.authority.types import AuthorityQuery
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Total, fitting, page_of, reach
from custody.kit.refs import AgentRef
from custody.protocol.signer.authority import AgentSigner, KeyQuorum
from custody.protocol.signer.order_refusals import AgentAbsent

_AGENT = "SELECT EXISTS (SELECT FROM agents WHERE tenant_id = $1 AND id = $2)"
_OF_AGENT = "WHERE tenant_id = $1 AND agent_id = $2 AND ($3::text IS NULL OR status = $3)"
_PAGE = f"{_OF_AGENT} ORDER BY created_at DESC, id LIMIT $4 OFFSET $5"


async def signers(pool: Pool, ref: AgentRef, query: AuthorityQuery) -> Listed[AgentSigner]:
    """Signers of an agent, newest first; AgentAbsent if there is no such agent."""
    rows, total = await _page(pool, ref, query, "signers")
    return page_of([AgentSigner.of(row) for row in rows], total)


async def quorums(pool: Pool, ref: AgentRef, query: AuthorityQuery) -> Listed[KeyQuorum]:
    """Key quorums of an agent, newest first; AgentAbsent if there is no such agent."""
    rows, total = await _page(pool, ref, query, "key_quorums")
    return page_of([KeyQuorum.of(row) for row in rows], total)


async def _page(pool: Pool, ref: AgentRef, query: AuthorityQuery, table: str) -> tuple[list[Any], Total]:
    async with tenant_scope(pool, ref.tenant) as connection:
        if not await connection.fetchval(_AGENT, ref.tenant, ref.agent):
            raise AgentAbsent
        asked = (ref.tenant, ref.agent, query.status)
        page = fitting(f"SELECT * FROM {table} {_PAGE}", "created_at DESC, id")
        rows = await connection.fetch(page, *asked, query.limit, query.offset)
        to_count = reach(query.offset, query.limit)
        return rows, to_count.total(await connection.fetchval(to_count.query(f"FROM {table} {_OF_AGENT}"), *asked))
