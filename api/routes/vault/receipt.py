"""An offline-verifiable statement about one signature."""

from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.receipts import IssueReceipt, Receipt

routes = Routes("/vault", tag="Transactions")


@routes.get("/<agent>/transactions/<tx_id>/receipt", who=asking(IssueReceipt), private=True)
async def get_receipt(ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, tx_id: str) -> Receipt:
    """Get a signed receipt of a signature: the rules that judged it, what it does, and who approved it.

    `custody receipt verify` checks it offline.
    """
    return (await ports.workers.ask(IssueReceipt(agent.agent, tx_id), caller)).answer
