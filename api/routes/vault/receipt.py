"""An offline-verifiable statement about one signature. Decisions 10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.receipts import issue
from custody.receipts.types import NotSigned, Receipt
from custody.transactions.types import TransactionAbsent

routes = Routes("/vault", tag="Transactions")


@routes.get(
    "/<agent>/transactions/<tx_id>/receipt",
    who=tenant_read | agent_token,
    returns={200: Receipt},
    fails=(TransactionAbsent, NotSigned),
    private=True,
)
async def get(ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, tx_id: str) -> Any:
    """Get the signer's signed statement about a signature: the rules that judged it, what it does, and who approved.

    `custody receipt verify` checks it without asking anybody.
    """
    return await issue.issue(ports, caller, agent, tx_id)
