"""What signing would come to. Decisions 10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.agents.types import AgentAbsent
from custody.chains.orders import Question
from custody.foresight.simulate import simulate as simulate_order
from custody.foresight.types import Simulated
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.errors import Conflict, Frozen, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/simulate",
    who=tenant_read | agent_token,
    returns={200: Simulated},
    fails=(AgentAbsent, Conflict, Frozen, UpstreamFailed),
    private=True,
)
async def simulate(ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, body: Question) -> Any:
    """Say what signing this order would come to right now; nothing is signed and nothing is written.

    The same code decides as when signing. What signing refuses before a policy judges it is refused here, too.
    An `Idempotency-Key` keeps no answer, because nothing is written: each question is answered anew.
    """
    return await simulate_order(ports, caller, agent, body)
