"""Sign-in at Google, Discord and X, and the exchange of the code of any provider for a session."""

from api.areas.sign_on import sign_in
from api.areas.sign_on.types import (
    CallbackQuery,
    ExchangeBody,
    FlowCookies,
    OAuthQuery,
    ProviderCodeBody,
    ProviderUnknown,
    StateMissing,
)
from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answer_kinds import Page, Redirect
from custody.kit.callers import Origin
from custody.ports import Ports
from custody.protocol.identity.refusals import (
    UnknownAppClient,
)
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_on import BeginSignIn, ExchangeCode, OpenSignIn

routes = Routes("/auth/oauth", tag="Sign-on", hardened=False)


@routes.get(
    "/<oauth_provider>/authorize",
    who=asking(BeginSignIn),
    status=302,
    limit="sso",
    fails=(ProviderUnknown, UnknownAppClient),
    private=True,
    browsed=True,
    headers_too=("Set-Cookie",),
)
async def begin_oauth(
    ports: Ports, origin: Origin, oauth_provider: str, cookies: FlowCookies, query: OAuthQuery
) -> Redirect:
    """Send the browser to a provider of this deployment.

    `redirect_uri` must be in the list of the app client that `client_id` names, of the tenant's default app client, or,
    without a tenant, of the operator's. Problems before the match are answered here; afterwards the browser goes back
    there, with `error` and `error_code`. A browser that asks for HTML gets refusals as a page.
    """
    return await sign_in.begin_oauth(ports, origin, oauth_provider, cookies, query)


@routes.get(
    "/<oauth_provider>/callback",
    who=asking(OpenSignIn),
    status=303,
    limit="callback",
    fails=(ProviderUnknown, StateMissing),
    private=True,
    browsed=True,
    media="text/html",
)
async def finish_oauth(
    ports: Ports, origin: Origin, oauth_provider: str, cookies: FlowCookies, query: CallbackQuery
) -> Redirect | Page:
    """Take the provider's answer and send the browser back to the client, with a code or an error."""
    return await sign_in.oauth_came_back(ports, origin, oauth_provider, cookies, query)


@routes.post(
    "/<oauth_provider>/token",
    who=asking(ExchangeCode),
    limit="exchange",
    fails=(ProviderUnknown,),
    private=True,
    shows_secret=True,
    both_spellings=True,
)
async def exchange_oauth_code(ports: Ports, origin: Origin, oauth_provider: str, body: ProviderCodeBody) -> SignedIn:
    """Exchange the code of one provider for a session. Fields are also accepted in camel case."""
    return await sign_in.exchange_of(ports, origin, oauth_provider, body)


@routes.post(
    "/exchange",
    who=asking(ExchangeCode),
    limit="exchange",
    private=True,
    shows_secret=True,
    both_spellings=True,
)
async def exchange_code(ports: Ports, origin: Origin, body: ExchangeBody) -> SignedIn:
    """Exchange the code of an OAuth, OIDC or SAML sign-in for a session.

    The first try uses the code up, right or wrong. A code that is sent again after it worked ends its session. Fields
    are also accepted in camel case.
    """
    return await sign_in.exchange(ports, origin, body)
