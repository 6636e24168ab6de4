"""A page of transactions: of one agent, or of all."""

from api.areas.transactions import export
from api.areas.transactions.redaction import shown_to
from custody.kit.answer_kinds import Document
from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.transactions import store
from custody.transactions.store import Found
from custody.transactions.types import MAX_PAGE, USUAL_PAGE, TenantTransactionQuery, TransactionPage, TransactionQuery


class BadPart(Invalid):
    """limit is at most 200, and include is for JSON alone; for longer lists without data send format=csv."""


async def search(ports: Ports, ref: AgentRef, query: TransactionQuery) -> TransactionPage:
    """Newest first, with the page it is."""
    found = await store.search(ports.pool, ref, query)
    return _page(found, query.limit)


async def search_all(ports: Ports, caller: TenantCaller, query: TenantTransactionQuery) -> TransactionPage | Document:
    """Of every agent of the tenant, as a page or as a file."""
    if query.format == "csv":
        if query.include:
            raise BadPart(fields=["include"])
        return await export.export(ports.pool, ports.search_share, caller, query)
    limit = query.limit or USUAL_PAGE
    if limit > MAX_PAGE:
        raise BadPart(fields=["limit"])
    found = await store.search_tenant(ports.pool, ports.search_share, caller.tenant, query)
    return shown_to(caller, _page(found, limit))


def _page(found: Found, limit: int) -> TransactionPage:
    return TransactionPage(
        found.rows, found.total.rows, found.total.is_estimate, limit, found.before, found.next_cursor
    )
