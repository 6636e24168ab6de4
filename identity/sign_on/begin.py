"""A browser leaves for an identity provider.

The address it will come back to is matched first, so that nothing begins which could end at a stranger's page. What
it was begun for is one row; a crash leaves that, and ten minutes later nothing.
"""

from typing import Any

from custody.kit import tokens
from custody.protocol.identity.refusals import BadCodeChallenge, ProviderAbsent, SignInStateInvalid
from custody.protocol.identity.sign_on import BeginSignIn, SignInBegun
from custody.worker.acts import enter
from custody.worker.call import Call
from identity.context import Identity
from identity.sign_on import codes, destinations, providers, requests, saml, saml_configs
from identity.sign_on.providers import Provider, with_query
from identity.sign_on.requests import Request, Under


async def begin(identity: Identity, message: BeginSignIn, call: Call[None]) -> SignInBegun:
    """The address of the provider, with a state that only this browser brings back."""
    async with identity.pool.acquire() as connection, connection.transaction():
        await _admit(connection, identity, message)
        if message.kind == "saml":
            return SignInBegun(await _at_saml(connection, identity, message))
        provider = await _provider(connection, identity, message)
        _demand_enabled(message, enabled=provider.enabled)
        under = await requests.put(connection, identity, _request(identity, message, provider.configured))
    return SignInBegun(_at(identity, provider, under))


def _at(identity: Identity, provider: Provider, under: Under) -> str:
    asked = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": provider.callback,
        "scope": provider.scope,
        "state": under.state,
        "code_challenge": codes.challenge_of(under.secret(identity, "verifier")),
        "code_challenge_method": "S256",
        **({"nonce": under.secret(identity, "nonce")} if provider.issuer is not None else {}),
    }
    return with_query(provider.authorization_url, asked)


async def _admit(connection: Any, identity: Identity, message: BeginSignIn) -> None:
    """Raise unless it is an administrator's try, or ends at an address that is listed and with a challenge."""
    if message.test is not None:
        await _demand_ticket(connection, identity, message, message.test)
        return
    if not codes.CHALLENGE.fullmatch(message.code_challenge):
        raise BadCodeChallenge
    await destinations.demand(connection, identity, message)


def _demand_enabled(message: BeginSignIn, *, enabled: bool) -> None:
    """Raise for a provider that is switched off, unless an administrator tries it."""
    if not enabled and message.test is None:
        raise ProviderAbsent


async def _at_saml(connection: Any, identity: Identity, message: BeginSignIn) -> str:
    assert message.tenant is not None  # noqa: S101 - the route has named one
    await enter(connection, message.tenant)
    config = await saml_configs.find(connection, identity, message.tenant)
    if config is None:
        raise ProviderAbsent
    _demand_enabled(message, enabled=config.enabled)
    under = await requests.put(connection, identity, _request(identity, message, providers.digest(config)))
    return saml.address(identity, config, under)


async def _demand_ticket(connection: Any, identity: Identity, message: BeginSignIn, ticket: str) -> None:
    """Use up an administrator's ticket to try this provider."""
    request = (await requests.lock(connection, identity, ticket)).request
    named = (message.kind, message.provider, message.tenant)
    if not request.test or request.browser or named != (request.kind, request.provider, request.tenant):
        raise SignInStateInvalid
    await requests.end(connection, ticket)


async def _provider(connection: Any, identity: Identity, message: BeginSignIn) -> Provider:
    if message.kind == "oauth":
        return providers.of_deployment(identity, message.provider)
    assert message.tenant is not None  # noqa: S101 - the route has named one
    return await providers.of_tenant(connection, identity, message.tenant, message.provider)


def _request(identity: Identity, message: BeginSignIn, configured: str) -> Request:
    return Request(
        kind=message.kind,
        provider=message.provider,
        tenant=message.tenant,
        browser=tokens.digest(message.browser).hex(),
        configured=configured,
        redirect_uri=message.redirect_uri,
        state=message.state,
        challenge=message.code_challenge,
        test=message.test is not None,
        ends_at=requests.ends_at(),
        app=_app(identity, message),
    )


def _app(identity: Identity, message: BeginSignIn) -> str | None:
    """The app client at whose page here the person signs in; None at every other address."""
    if message.client is None or not destinations.is_sign_in_page(identity, message.redirect_uri):
        return None
    return message.client.removeprefix(f"{message.tenant}/")
