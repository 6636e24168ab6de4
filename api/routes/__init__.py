"""Every route: the table of contents."""

from api.http.endpoint import Endpoint
from api.routes import approvals, audit, dashboard, device, events, system
from api.routes.agents import agents, backtest, funds, policies
from api.routes.auth import device as auth_device
from api.routes.auth import mfa, passkeys, providers, sessions, sign_in
from api.routes.platform import members
from api.routes.platform import tenants as platform_tenants
from api.routes.secrets import credential_routes, secrets
from api.routes.tenants import app_clients, freeze, oversight, signing_keys, tenants
from api.routes.vault import decisions, history, receipt, replace, sign, simulate
from api.routes.webhooks import deliveries
from api.routes.webhooks import endpoints as webhooks

ROUTES = (
    system.health,
    system.routes,
    providers.routes,
    sign_in.routes,
    sessions.routes,
    mfa.routes,
    passkeys.routes,
    auth_device.routes,
    device.routes,
    agents.routes,
    funds.routes,
    policies.routes,
    backtest.routes,
    sign.routes,
    simulate.routes,
    replace.routes,
    decisions.routes,
    history.routes,
    receipt.routes,
    approvals.routes,
    dashboard.routes,
    secrets.routes,
    credential_routes.routes,
    tenants.routes,
    app_clients.routes,
    signing_keys.routes,
    oversight.routes,
    freeze.routes,
    audit.routes,
    platform_tenants.routes,
    members.routes,
    webhooks.routes,
    deliveries.routes,
    events.routes,
)


def endpoints() -> list[Endpoint]:
    """All declarations in the order of the list above."""
    return [endpoint for routes in ROUTES for endpoint in routes.endpoints]
