"""A page of an agent's transactions. Spec 1/4.6."""

from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.transactions import store
from custody.transactions.types import TransactionPage, TransactionQuery


async def search(ports: Ports, ref: AgentRef, query: TransactionQuery) -> TransactionPage:
    """Newest first, with the page it is."""
    found = await store.search(ports.pool, ref, query)
    return TransactionPage(found.rows, found.total, query.limit, query.offset)
