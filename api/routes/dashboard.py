"""One agent at a glance."""

from api.areas.dashboard import agent as use_case
from api.areas.dashboard.agent import Dashboard
from api.areas.policies.store import PolicyUnreadable
from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered

routes = Routes("/dashboard", tag="Dashboard")


@routes.get("/<agent>", who=tenant_read | agent_token, fails=(AgentAbsent, KeyTampered, PolicyUnreadable))
async def get_dashboard(ports: Ports, agent: AgentRef) -> Dashboard:
    """Get wallet, balance, spend, budgets, policies, pending approvals and recent transactions in one call."""
    return await use_case.dashboard(ports, agent)
