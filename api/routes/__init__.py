"""Every route: the table of contents."""

from api.http.endpoint import Endpoint
from api.routes import approvals, dashboard, system
from api.routes.agents import agents, policies
from api.routes.platform import tenants as platform_tenants
from api.routes.secrets import credential_routes, secrets
from api.routes.tenants import tenants
from api.routes.vault import decisions, history, sign

ROUTES = (
    system.health,
    system.routes,
    agents.routes,
    policies.routes,
    sign.routes,
    decisions.routes,
    history.routes,
    approvals.routes,
    dashboard.routes,
    secrets.routes,
    credential_routes.routes,
    tenants.routes,
    platform_tenants.routes,
)


def endpoints() -> list[Endpoint]:
    """All declarations in the order of the list above."""
    return [endpoint for routes in ROUTES for endpoint in routes.endpoints]
