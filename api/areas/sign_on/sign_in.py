"""A browser's way through an identity provider, as the api sees it.

It talks to the provider and decides nothing: identity makes the state, matches the addresses, and judges what the
provider signed.
"""

import asyncio
import re
from typing import get_args

import msgspec

from api.areas.sign_on import report, token_endpoint
from api.areas.sign_on.types import (
    CallbackQuery,
    ExchangeBody,
    FlowCookies,
    OAuthQuery,
    OidcQuery,
    ProviderCodeBody,
    ProviderUnknown,
    SignOnQuery,
    StateMissing,
    TenantRequired,
    TwoTenants,
)
from custody.kit import tokens
from custody.kit.answer_kinds import Cookie, Page, Redirect
from custody.kit.callers import Origin
from custody.kit.errors import Unavailable
from custody.kit.oauth_endpoints import OAuthName
from custody.kit.shapes import TenantId
from custody.notifications.mail import Letter
from custody.ports import Ports
from custody.protocol.identity.refusals import BadCodeChallenge, UnknownAppClient
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_on import (
    BeginSignIn,
    ExchangeCode,
    FinishOAuth,
    Opened,
    OpenSignIn,
    SentBack,
    SignOnKind,
    Tried,
)

# A flow ends after ten minutes; the cookie of one that was begun earlier in this browser serves another one.
COOKIE_SECONDS = 600
# How long a callback waits for the scheduler to fetch keys that a token names, and how often it looks.
KEYS_SECONDS, KEYS_LOOK_SECONDS = 5.0, 0.25
_RANDOM = re.compile(r"[A-Za-z0-9_-]{43}")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_MOST_SAID = 200


class _Way(msgspec.Struct, frozen=True):
    """The provider that a browser is at: one of the deployment's, or one of a tenant's."""

    kind: SignOnKind
    provider: str
    tenant: str | None = None


async def begin_oauth(ports: Ports, origin: Origin, provider: str, cookies: FlowCookies, query: OAuthQuery) -> Redirect:
    """Send the browser to Google, Discord or X."""
    name = _provider(ports, provider)
    client = query.client_id or query.camel_client_id or None
    tenant = query.tenant_id
    if client is not None and tenant is None and "/" in client:
        # From the right: the id of a tenant may not have a slash, nor may a client's.
        tenant = client.rpartition("/")[0]
    # A tenant's id, a slash and a client's.
    if client is not None and not (len(client) <= 129 and _is_tenant(tenant)):
        raise UnknownAppClient
    return await _begin(ports, origin, _Way("oauth", name, tenant), cookies, query, client)


async def begin_oidc(ports: Ports, origin: Origin, provider: str, cookies: FlowCookies, query: OidcQuery) -> Redirect:
    """Send the browser to a tenant's own provider."""
    named, name = _parts(provider)
    if named is not None and query.tenant_id not in (None, named):
        raise TwoTenants
    tenant = named or query.tenant_id
    if tenant is None:
        raise TenantRequired
    return await _begin(ports, origin, _Way("oidc", name, tenant), cookies, query)


async def oauth_came_back(
    ports: Ports, origin: Origin, provider: str, cookies: FlowCookies, query: CallbackQuery
) -> Redirect | Page:
    """Send the browser on to the client, with a code or an error."""
    return await _came_back(ports, origin, _Way("oauth", _provider(ports, provider)), cookies, query)


async def oidc_came_back(
    ports: Ports, origin: Origin, provider: str, cookies: FlowCookies, query: CallbackQuery
) -> Redirect | Page:
    """The same from a tenant's provider, each of which has a callback of its own."""
    tenant, name = _parts(provider)
    if tenant is None:
        raise ProviderUnknown
    return await _came_back(ports, origin, _Way("oidc", name, tenant), cookies, query)


async def exchange(ports: Ports, origin: Origin, body: ExchangeBody) -> SignedIn:
    """The session behind a code of any provider."""
    message = ExchangeCode(
        code=body.code, code_verifier=body.code_verifier, redirect_uri=body.redirect_uri, tenant=body.tenant_id
    )
    return await _exchange(ports, origin, message)


async def exchange_of(ports: Ports, origin: Origin, provider: str, body: ProviderCodeBody) -> SignedIn:
    """The session behind a code of one provider of the deployment."""
    message = ExchangeCode(
        code=body.code,
        code_verifier=body.code_verifier,
        redirect_uri=body.redirect_uri,
        tenant=body.tenant_id,
        provider=_provider(ports, provider),
    )
    return await _exchange(ports, origin, message)


def browser_of(flow: str) -> str:
    """The random value of a browser's cookie: the one it has, so that several tabs work, or a new one."""
    return flow if _RANDOM.fullmatch(flow) else tokens.new_random()


def check_challenge_method(method: str) -> None:
    """Raise unless the client promises SHA-256: with anything weaker a code alone would be enough."""
    if method != "S256":
        raise BadCodeChallenge


async def _begin(
    ports: Ports, origin: Origin, way: _Way, cookies: FlowCookies, query: SignOnQuery, client: str | None = None
) -> Redirect:
    if not query.test:
        check_challenge_method(query.code_challenge_method)
    browser = browser_of(cookies.flow)
    message = BeginSignIn(
        kind=way.kind,
        provider=way.provider,
        browser=browser,
        tenant=way.tenant,
        client=client,
        redirect_uri=query.redirect_uri,
        code_challenge=query.code_challenge[:128],
        state=query.state[:1024],
        test=query.test or None,
    )
    begun = await ports.workers.tell(message, origin)
    return Redirect(begun.url, Cookie("custody-flow", browser, COOKIE_SECONDS))


async def _came_back(
    ports: Ports, origin: Origin, way: _Way, cookies: FlowCookies, query: CallbackQuery
) -> Redirect | Page:
    if not query.state or len(query.state) > 512:
        raise StateMissing
    said = _UNPRINTABLE.sub("?", query.error[:_MOST_SAID]) or ("" if query.code else "no code")
    message = OpenSignIn(
        kind=way.kind,
        provider=way.provider,
        tenant=way.tenant,
        state=query.state,
        browser=cookies.flow[:512],
        issuer=query.iss[:512] or None,
        error=said or None,
    )
    opened = await ports.workers.tell(message, origin)
    if not isinstance(opened, Opened):
        return end_flow(opened)
    told = await token_endpoint.ask(ports, way.kind, way.provider, way.tenant, opened, query.code)
    finish = FinishOAuth(
        state=query.state,
        id_token=told.id_token,
        profile=told.profile,
        userinfo=told.userinfo,
        problem=told.problem,
    )
    return end_flow(await _finish(ports, origin, finish))


async def _finish(ports: Ports, origin: Origin, finish: FinishOAuth) -> SentBack | Tried:
    """Judged, when the keys are there that the token names."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + KEYS_SECONDS
    while True:
        try:
            return await ports.workers.tell(finish, origin)
        except Unavailable as refusal:
            if refusal.code != "keys_wanted":
                raise
            if loop.time() > deadline:
                return await ports.workers.tell(FinishOAuth(state=finish.state, problem="keys_unavailable"), origin)
        await asyncio.sleep(KEYS_LOOK_SECONDS)


def _new_way_in(tenant: str) -> Letter:
    """For a member whom their tenant's identity provider has signed in for the first time."""
    text = (
        f"The identity provider of the organisation {tenant} has signed you in for the first time. From now on it is\n"
        "a way into your account there, and only there.\n\n"
        "If this was not you, tell an administrator of the organisation.\n"
    )
    return Letter("A new way to sign in", text)


def end_flow(outcome: SentBack | Tried) -> Redirect | Page:
    """Back to the client, or the report of an administrator's try."""
    return Redirect(outcome.location) if isinstance(outcome, SentBack) else report.page(outcome)


async def _exchange(ports: Ports, origin: Origin, message: ExchangeCode) -> SignedIn:
    done = await ports.workers.tell(message, origin)
    if done.tell is not None and ports.mail is not None:
        ports.mail.send(done.tell, _new_way_in(done.session.tenant.id))
    return done.session


def _provider(ports: Ports, provider: str) -> OAuthName:
    """The provider, if the deployment has a client and its secret there."""
    for name in get_args(OAuthName):
        if name == provider and name in ports.oauth_secrets:
            found: OAuthName = name
            return found
    raise ProviderUnknown


def _is_tenant(text: str | None) -> bool:
    """Tell whether a text may be a tenant's id: identity closes the connection on what it cannot read."""
    try:
        msgspec.convert(text, TenantId | None)
    except msgspec.ValidationError:
        return False
    return True


def _parts(provider: str) -> tuple[str | None, str]:
    """Tenant and id of a tenant's provider; neither has a tilde."""
    tenant, tilde, name = provider.rpartition("~")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name) or not _is_tenant(tenant if tilde else None):
        raise ProviderUnknown
    return (tenant if tilde else None), name
