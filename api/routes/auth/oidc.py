"""Sign-in at a tenant's own OIDC provider."""

from api.areas.sign_on import sign_in
from api.areas.sign_on.types import (
    CallbackQuery,
    FlowCookies,
    OidcQuery,
    ProviderUnknown,
    StateMissing,
    TenantRequired,
    TwoTenants,
)
from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answer_kinds import Page, Redirect
from custody.kit.callers import Origin
from custody.ports import Ports
from custody.protocol.identity.sign_on import BeginSignIn, OpenSignIn

routes = Routes("/auth/oidc", tag="Sign-on", hardened=False)


@routes.get(
    "/<oidc_provider>/authorize",
    who=asking(BeginSignIn),
    status=302,
    limit="sso",
    fails=(ProviderUnknown, TenantRequired, TwoTenants),
    private=True,
    browsed=True,
    headers_too=("Set-Cookie",),
)
async def begin_oidc(
    ports: Ports, origin: Origin, oidc_provider: str, cookies: FlowCookies, query: OidcQuery
) -> Redirect:
    """Send the browser to a tenant's OIDC provider.

    Refusals are as on `/auth/oauth/{provider}/authorize`.
    """
    return await sign_in.begin_oidc(ports, origin, oidc_provider, cookies, query)


@routes.get(
    "/<oidc_provider>/callback",
    who=asking(OpenSignIn),
    status=303,
    limit="callback",
    fails=(ProviderUnknown, StateMissing),
    private=True,
    browsed=True,
    media="text/html",
)
async def finish_oidc(
    ports: Ports, origin: Origin, oidc_provider: str, cookies: FlowCookies, query: CallbackQuery
) -> Redirect | Page:
    """Take the answer of a tenant's provider and send the browser back to the client, with a code or an error."""
    return await sign_in.oidc_came_back(ports, origin, oidc_provider, cookies, query)
