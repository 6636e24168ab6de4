"""The APIs that an agent may call."""

from api.areas.secrets import store
from api.areas.secrets.types import CallableApi
from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.kit.paging import Listed, Page
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent

routes = Routes("/agents", tag="Credential routes")


@routes.get("/<agent>/apis", who=tenant_read | agent_token, fails=(AgentAbsent,), private=True)
async def list_callable_apis(ports: Ports, agent: AgentRef, query: Page) -> Listed[CallableApi]:
    """List the APIs that an agent may call through the proxy now, in the order in which a request falls to them.

    From the tenant's credential routes: those that are enabled, serve this agent, and whose secrets can be used. No
    secret, and no name of one, is in it.
    """
    return await store.apis_of(ports.pool, agent, query)
