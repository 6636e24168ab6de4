"""A browser comes back from Google, Discord, X or a tenant's OIDC provider.

`open_sign_in` uses the state up and lets the api exchange the provider's code, once; `finish` judges what the provider
said. The state is that of one browser, provider and tenant; the ID token has to have the nonce that was made from it,
so a token of another flow, or of another client at the same provider, proves nothing here.
"""

import re
from typing import Any

from custody.kit import clock, tokens
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, Unauthenticated, Unavailable
from custody.protocol.identity.refusals import KeysWanted, ProviderAbsent, SignInStateInvalid
from custody.protocol.identity.sign_on import FinishOAuth, Opened, OpenSignIn, SentBack, Tried
from custody.worker.acts import enter
from custody.worker.call import Call
from identity.context import Identity
from identity.sign_on import domains, ending, id_tokens, keys, people, providers, requests, trying, userinfo
from identity.sign_on.ending import Way
from identity.sign_on.id_tokens import IdClaims, IdTokenRefused
from identity.sign_on.people import Proven
from identity.sign_on.providers import Provider
from identity.sign_on.requests import Request, Under

# Of X: a number as a text.
_PROFILE = re.compile(r"[0-9]{1,20}")


class ProviderRefused(Unauthenticated):
    """The identity provider did not sign you in; try again there."""


class IssuerMismatch(Unauthenticated):
    """The answer came from another identity provider than the one that was asked; begin again."""


class ProviderChanged(Unauthenticated):
    """The identity provider's configuration was changed meanwhile; begin again."""


class TokenEndpointFailed(Unavailable):
    """The identity provider did not exchange the code; try again in a minute."""


class TokenEndpointRefused(Unauthenticated):
    """The identity provider refused to exchange the code; an administrator should look at client id and secret."""


class KeysUnavailable(Unavailable):
    """The identity provider's keys cannot be fetched; try again in a minute."""


class ProfileInvalid(Unauthenticated):
    """The identity provider said nothing usable of who you are; try again there."""


class IdTokenMissing(Unauthenticated):
    """The identity provider gave no ID token; its administrator must let this client ask for the scope openid."""


class IdTokenInvalid(Unauthenticated):
    """The ID token proves nothing; the code says why."""

    def __init__(self, refused: IdTokenRefused) -> None:
        super().__init__(refused.sentence, code=refused.code)


class UserinfoFailed(Unavailable):
    """The identity provider's userinfo endpoint did not answer; try again in a minute."""


class UserinfoInvalid(Unauthenticated):
    """The userinfo endpoint of the identity provider spoke of somebody else or gave no JSON; tell its administrator."""


class EmailUnverified(Unauthenticated):
    """The identity provider does not call your e-mail address verified; its administrator must switch that on."""


class EmailDomainUnverified(Unauthenticated):
    """Your e-mail address is in no domain that this tenant has verified; its administrator must add the domain."""


_PROBLEMS: dict[str, CustodyError] = {
    "token_endpoint_failed": TokenEndpointFailed(),
    "token_endpoint_refused": TokenEndpointRefused(),
    "profile_failed": ProfileInvalid(),
    "userinfo_failed": UserinfoFailed(),
    "keys_unavailable": KeysUnavailable(),
}


async def open_sign_in(identity: Identity, message: OpenSignIn, call: Call[None]) -> Opened | SentBack | Tried:
    """Use up the state of a browser that came back, whatever it brings."""
    async with identity.pool.acquire() as connection, connection.transaction():
        under = await requests.lock(connection, identity, message.state)
        request = under.request
        asked = (message.kind, message.provider, message.tenant if message.kind == "oidc" else request.tenant)
        is_its = asked == (request.kind, request.provider, request.tenant)
        own = tokens.equal(tokens.digest(message.browser), bytes.fromhex(request.browser))
        if not (is_its and own):
            # Of somebody else's state nothing is told, and it is used up all the same.
            await requests.end(connection, under.state)
        elif not under.opened:
            return await _open(connection, identity, message, call.origin, under)
        # What is opened is not opened again; the first to come is still at it, and ends it.
    raise SignInStateInvalid


async def finish(identity: Identity, message: FinishOAuth, call: Call[None]) -> SentBack | Tried:
    """Judge the provider's answer; a code for the client if the person would come in."""
    wanted: Provider | None = None
    async with identity.pool.acquire() as connection, connection.transaction():
        under = await requests.lock(connection, identity, message.state)
        if not under.opened:
            raise SignInStateInvalid
        way = _way(under.request, call.origin)
        try:
            provider = await _provider(connection, identity, under.request)
            if message.problem is not None:
                raise _PROBLEMS[message.problem]
            proven = await _prove(connection, identity, message, under, provider, way.arrived)
        except id_tokens.KeyUnknown:
            # The state stays: the api asks again when the scheduler has fetched the keys.
            wanted = provider
        except CustodyError as refusal:
            await requests.end(connection, under.state)
            return await ending.with_error(connection, identity, way, refusal)
        else:
            await requests.end(connection, under.state)
            return await ending.with_code(connection, identity, way, proven)
    await keys.want(identity, wanted.keys_of, wanted.id)
    raise KeysWanted


def _way(request: Request, origin: Origin) -> Way:
    return Way(request, origin, {}, trying.oidc_checks)


async def _open(
    connection: Any, identity: Identity, message: OpenSignIn, origin: Origin, under: Under
) -> Opened | SentBack | Tried:
    try:
        provider = await _provider(connection, identity, under.request)
        if message.issuer is None:
            wrong = provider.promises_issuer and message.error is None
        else:
            wrong = provider.issuer is not None and message.issuer != provider.issuer
        if wrong:
            raise IssuerMismatch(expected=provider.issuer or "", found=message.issuer or "nothing")
        if message.error is not None:
            raise ProviderRefused(found=message.error)
    except CustodyError as refusal:
        await requests.end(connection, under.state)
        return await ending.with_error(connection, identity, _way(under.request, origin), refusal)
    await requests.note_opened(connection, identity, under)
    return provider.for_exchange(under.secret(identity, "verifier"))


async def _provider(connection: Any, identity: Identity, request: Request) -> Provider:
    """The provider as it was when the browser left; ProviderChanged if it is another one by now."""
    try:
        if request.kind == "oauth":
            found = providers.of_deployment(identity, request.provider)
        else:
            assert request.tenant is not None  # noqa: S101 - a tenant's provider
            found = await providers.of_tenant(connection, identity, request.tenant, request.provider)
    except ProviderAbsent:
        raise ProviderChanged from None
    if found.configured != request.configured:
        raise ProviderChanged
    return found


async def _prove(
    connection: Any,
    identity: Identity,
    message: FinishOAuth,
    under: Under,
    provider: Provider,
    arrived: dict[str, Any],
) -> Proven:
    if provider.profile_url is not None:
        if message.profile is None or not _PROFILE.fullmatch(message.profile):
            raise ProfileInvalid
        asked = under.request
        return Proven(kind="twitter", subject=message.profile, provider="twitter", tenant=asked.tenant, app=asked.app)
    if message.id_token is None or provider.issuer is None:
        raise IdTokenMissing
    expected = id_tokens.Expected(
        issuer=provider.issuer,
        client_id=provider.client_id,
        audience=provider.audience,
        nonce=under.secret(identity, "nonce"),
        now=clock.now(),
    )
    keys_there = await keys.key_set(connection, identity, provider.keys_of, provider.id)
    try:
        claims = id_tokens.verify(message.id_token, expected, keys_there)
    except IdTokenRefused as refused:
        raise IdTokenInvalid(refused) from None
    arrived.update(claims.said)
    if under.request.kind == "oauth":
        return Proven(
            kind="google" if provider.id == "google" else "discord",
            subject=claims.subject,
            provider=provider.id,
            tenant=under.request.tenant,
            app=under.request.app,
            name=claims.text("name"),
            shown_email=id_tokens.verified_email(claims, provider.issuer),
        )
    if provider.userinfo_url is not None and message.userinfo is not None:
        try:
            claims = userinfo.complete(claims, message.userinfo)
        except userinfo.NotTheirs:
            raise UserinfoInvalid from None
        arrived.update(claims.said)
    return await _of_tenant(connection, identity, claims, provider)


async def _of_tenant(connection: Any, identity: Identity, claims: IdClaims, provider: Provider) -> Proven:
    """A person whom a tenant's provider proves, by an address in a domain that the tenant has proven."""
    tenant, issuer = provider.keys_of, provider.issuer or ""
    email = id_tokens.verified_email(claims, issuer)
    if email is None:
        raise EmailUnverified
    await enter(connection, tenant)
    if not await domains.is_verified(connection, identity, tenant, email.rpartition("@")[2]):
        raise EmailDomainUnverified(found=email)
    return Proven(
        kind="oidc",
        subject=people.subject_of(tenant, provider.id, issuer, claims.subject),
        provider=f"oidc:{provider.id}",
        tenant=tenant,
        name=claims.text("name"),
        shown_email=email,
        email=email,
        newcomers=provider.newcomers,
    )
