"""Ask for the receipt of a signature; the signer checks and states. Decisions 10."""

from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import IssueReceipt
from custody.receipts.types import Receipt


async def issue(ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, tx_id: str) -> Receipt:
    """The receipt as of now."""
    return Receipt(**await asked(ports.signer, IssueReceipt(ref.agent, tx_id), caller))
