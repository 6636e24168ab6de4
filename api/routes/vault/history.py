"""What an agent asked for, and what became of it. Spec 1/4.6, decisions 4."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.agents.types import AgentAbsent
from custody.kit.paging import Page
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.transactions import history, store
from custody.transactions.types import PendingItem, Transaction, TransactionAbsent, TransactionPage, TransactionQuery

routes = Routes("/vault", tag="Transactions")
WHO = tenant_read | agent_token


@routes.get("/<agent>/pending", who=WHO, returns={200: list[PendingItem]}, fails=(AgentAbsent,))
async def pending(ports: Ports, agent: AgentRef, query: Page) -> Any:
    """List what waits for a person, newest first."""
    return await store.pending(ports.pool, agent, query.limit, query.offset)


@routes.get("/<agent>/history", who=WHO, returns={200: list[Transaction]}, fails=(AgentAbsent,), private=True)
async def all_of(ports: Ports, agent: AgentRef, query: Page) -> Any:
    """List all transactions of an agent, newest first."""
    return await store.history(ports.pool, agent, query.limit, query.offset)


@routes.get("/<agent>/transactions", who=WHO, returns={200: TransactionPage}, fails=(AgentAbsent,), private=True)
async def search(ports: Ports, agent: AgentRef, query: TransactionQuery) -> Any:
    """Search an agent's transactions."""
    return await history.search(ports, agent, query)


@routes.get(
    "/<agent>/transactions/<tx_id>", who=WHO, returns={200: Transaction}, fails=(TransactionAbsent,), private=True
)
async def get(ports: Ports, agent: AgentRef, tx_id: str) -> Any:
    """Get one transaction."""
    return await store.get(ports.pool, agent, tx_id)
