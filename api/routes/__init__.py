"""Every route: the table of contents."""

from api.http.endpoint import Endpoint
from api.routes import (
    accounts,
    approvals,
    approver_keys,
    audit,
    chains,
    dashboard,
    device,
    docs,
    events,
    intents,
    invitation,
    joining,
    me,
    system,
    tenant_users,
    transactions,
    user_wallets,
)
from api.routes.agents import agents, backtest, funds, policies, quorums, signers
from api.routes.auth import device as auth_device
from api.routes.auth import discover, identities, mfa, oauth, oidc, passkeys, providers, saml, sessions, sign_in
from api.routes.platform import api_keys as platform_api_keys
from api.routes.platform import gas_spend, invitations, members
from api.routes.platform import tenants as platform_tenants
from api.routes.platform import users as platform_users
from api.routes.secrets import credential_routes, secrets
from api.routes.tenants import (
    api_keys,
    app_clients,
    freeze,
    oidc_providers,
    oversight,
    saml_sso,
    sign_on,
    signing_keys,
    sso_domains,
    tenants,
    wallet_policy,
)
from api.routes.vault import actions, bitcoin, decisions, history, imports, receipt, replace, sign, simulate
from api.routes.webhooks import deliveries
from api.routes.webhooks import endpoints as webhooks

ROUTES = (
    system.health,
    system.routes,
    me.routes,
    providers.routes,
    sign_in.routes,
    discover.routes,
    oauth.routes,
    oidc.routes,
    saml.routes,
    sessions.routes,
    mfa.routes,
    passkeys.routes,
    identities.routes,
    auth_device.routes,
    device.routes,
    invitation.routes,
    docs.routes,
    chains.routes,
    agents.routes,
    funds.routes,
    policies.routes,
    backtest.routes,
    signers.routes,
    quorums.routes,
    sign.routes,
    bitcoin.routes,
    imports.routes,
    user_wallets.routes,
    simulate.routes,
    replace.routes,
    actions.routes,
    decisions.routes,
    history.routes,
    receipt.routes,
    transactions.routes,
    approvals.routes,
    intents.routes,
    accounts.routes,
    approver_keys.routes,
    dashboard.routes,
    secrets.routes,
    credential_routes.routes,
    tenants.routes,
    api_keys.routes,
    app_clients.routes,
    saml_sso.routes,
    sign_on.routes,
    oidc_providers.routes,
    signing_keys.routes,
    sso_domains.routes,
    oversight.routes,
    freeze.routes,
    audit.routes,
    platform_tenants.routes,
    platform_api_keys.routes,
    members.routes,
    invitations.routes,
    joining.routes,
    wallet_policy.routes,
    platform_users.routes,
    gas_spend.routes,
    tenant_users.routes,
    webhooks.routes,
    deliveries.routes,
    events.routes,
)


def endpoints() -> list[Endpoint]:
    """All declarations in the order of the list above."""
    return [endpoint for routes in ROUTES for endpoint in routes.endpoints]
