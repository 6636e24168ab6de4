"""The provider of one sign-in, whichever kind it is: the deployment's own, or one of a tenant's."""

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from custody.kit.oauth_endpoints import BASIC, SCOPES
from custody.protocol.identity.refusals import ProviderAbsent
from custody.protocol.identity.sign_on import Opened, SignOnKind
from custody.worker.acts import enter
from custody.worker.proven import PLATFORM
from custody.worker.sealing import sha256
from identity.context import Identity
from identity.sign_on import oidc_providers, saml_configs

# The id of a tenant's SAML provider, of which there is one.
SAML = "saml"


class Begins(msgspec.Struct, frozen=True):
    """The start of a browser with a provider, and the configuration of now."""

    kind: SignOnKind
    address: str
    configured: str


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The way of a browser there, the exchange of its code, and the judgement of its answer.

    `keys_of`: under which tenant its keys are kept. `configured` changes with everything that is judged by.
    """

    id: str
    keys_of: str
    authorization_url: str
    token_url: str
    client_id: str
    scope: str
    callback: str
    configured: str
    issuer: str | None = None
    audience: tuple[str, ...] = ()
    promises_issuer: bool = False
    secret_env: str | None = None
    basic: bool = False
    profile_url: str | None = None
    userinfo_url: str | None = None
    newcomers: bool = False
    enabled: bool = True

    def for_exchange(self, verifier: str) -> Opened:
        """Return what the api needs for the exchange of the code."""
        return Opened(
            token_url=self.token_url,
            client_id=self.client_id,
            callback=self.callback,
            verifier=verifier,
            secret_env=self.secret_env,
            basic=self.basic,
            profile_url=self.profile_url,
            userinfo_url=self.userinfo_url,
        )


def of_deployment(identity: Identity, name: str) -> Provider:
    """Google, Discord or X, if this deployment has a client there."""
    client_id = next((value for known, value in identity.oauth_clients.items() if known == name), None)
    endpoints = next((value for known, value in identity.oauth_endpoints.items() if known == name), None)
    if client_id is None or endpoints is None:
        raise ProviderAbsent
    return Provider(
        id=name,
        keys_of=PLATFORM,
        authorization_url=endpoints.authorization_url,
        token_url=endpoints.token_url,
        client_id=client_id,
        scope=next(scope for known, scope in SCOPES.items() if known == name),
        callback=f"{identity.public_url}/auth/oauth/{name}/callback",
        configured=digest(endpoints, client_id),
        issuer=endpoints.issuer,
        audience=(client_id,),
        basic=name in BASIC,
        profile_url=endpoints.profile_url,
    )


async def of_tenant(connection: Any, identity: Identity, tenant: str, provider: str) -> Provider:
    """One of a tenant's OIDC providers, switched on or not; ProviderAbsent if there is none."""
    await enter(connection, tenant)
    found = await oidc_providers.find(connection, identity, tenant, provider)
    if found is None:
        raise ProviderAbsent
    return Provider(
        id=provider,
        keys_of=tenant,
        authorization_url=found.authorization_url,
        token_url=found.token_url,
        client_id=found.client_id,
        scope=" ".join(found.scopes),
        callback=callback_of(identity, tenant, provider),
        configured=digest(found),
        issuer=found.issuer,
        audience=tuple(found.audience),
        promises_issuer=found.iss_in_response,
        secret_env=found.client_secret_env,
        basic=found.client_authentication == "basic",
        userinfo_url=found.userinfo_url,
        newcomers=found.allow_jit_provisioning,
        enabled=found.enabled,
    )


async def begins(connection: Any, identity: Identity, tenant: str, provider: str) -> Begins:
    """Find where browsers begin with one of a tenant's providers, SAML among them; ProviderAbsent if there is none."""
    if provider != SAML:
        found = await of_tenant(connection, identity, tenant, provider)
        return Begins("oidc", f"{identity.public_url}/auth/oidc/{tenant}~{provider}/authorize", found.configured)
    await enter(connection, tenant)
    config = await saml_configs.find(connection, identity, tenant)
    if config is None:
        raise ProviderAbsent
    return Begins("saml", f"{identity.public_url}/auth/saml/{tenant}/login", digest(config))


def callback_of(identity: Identity, tenant: str, provider: str) -> str:
    """Each tenant's provider has an address of its own, so no answer of one is taken for another's."""
    return f"{identity.public_url}/auth/oidc/{tenant}~{provider}/callback"


def with_query(address: str, given: dict[str, str]) -> str:
    """An address with parameters added to the query that it may have."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(given, quote_via=quote)}"


def digest(*documents: Any) -> str:
    """Compute what changes with the configuration that a sign-in began with."""
    return sha256(msgspec.json.encode(documents, order="sorted")).hex()
