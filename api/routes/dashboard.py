"""One agent at a glance. Spec 1/4.10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.agents.types import AgentAbsent
from custody.dashboard import agent as story
from custody.dashboard.agent import Dashboard
from custody.kit.refs import AgentRef
from custody.ports import Ports

routes = Routes("/dashboard", tag="Dashboard")


@routes.get("/<agent>", who=tenant_read | agent_token, returns={200: Dashboard}, fails=(AgentAbsent,))
async def dashboard(ports: Ports, agent: AgentRef) -> Any:
    """Get wallet, balance, spend, budgets, policies, pending approvals and recent transactions in one call."""
    return await story.dashboard(ports, agent)
