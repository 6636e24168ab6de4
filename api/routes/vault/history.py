"""The orders of an agent, and their outcomes."""

from api.areas.transactions import history
from api.areas.transactions.redaction import shown_to
from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.paging import Listed, Page
from custody.kit.refs import AgentRef
from custody.kit.search_bounds import BadTime
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import TransactionAbsent
from custody.transactions import store
from custody.transactions.types import (
    HistoryQuery,
    ListedTransaction,
    PendingItem,
    Transaction,
    TransactionPage,
    TransactionQuery,
)

routes = Routes("/vault", tag="Transactions")
WHO = tenant_read | agent_token


@routes.get("/<agent>/pending", who=WHO, fails=(AgentAbsent,))
async def list_pending_transactions(ports: Ports, agent: AgentRef, query: Page) -> Listed[PendingItem]:
    """List the agent's pending approvals, newest first."""
    return await store.pending(ports.pool, agent, query.limit, query.offset)


@routes.get("/<agent>/history", who=WHO, fails=(AgentAbsent,), private=True)
async def list_history(
    ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, query: HistoryQuery
) -> Listed[ListedTransaction]:
    """List all transactions of an agent, newest first.

    The requested and the signed data are in the single transaction, and here with `include=data`; signatures and
    signed bytes are null for callers who may neither sign nor approve. A page ends before its limit where it would
    exceed 4 MiB; continue at `offset` plus the number of its rows.
    """
    return shown_to(caller, await store.history(ports.pool, agent, query))


@routes.get("/<agent>/transactions", who=WHO, fails=(AgentAbsent, BadTime), private=True)
async def list_transactions(
    ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, query: TransactionQuery
) -> TransactionPage:
    """Search an agent's transactions.

    The requested and the signed data are in the single transaction, and here with `include=data`; signatures and
    signed bytes are null for callers who may neither sign nor approve. A page ends before its limit where it would
    exceed 4 MiB; continue at `offset` plus the number of its rows.
    """
    return shown_to(caller, await history.search(ports, agent, query))


@routes.get("/<agent>/transactions/<tx_id>", who=WHO, fails=(TransactionAbsent,), private=True)
async def get_transaction(ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, tx_id: str) -> Transaction:
    """Get one transaction.

    Its signature and signed bytes are null for callers who may neither sign nor approve.
    """
    return shown_to(caller, await store.get(ports.pool, agent, tx_id))
