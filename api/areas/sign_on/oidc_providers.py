"""A tenant's OIDC providers: saved after their issuers were asked, shown with what to copy to them."""

import asyncio
from collections.abc import Sequence

import msgspec

from api.areas.sign_on import client_secrets
from api.areas.sign_on.discovery import complete, discover
from api.areas.sign_on.oidc_types import OidcProviderBody, OidcProviders, OidcProvidersBody, ShownOidcProvider
from custody.identity.oidc_provider import (
    OidcProvider,
    ProviderProblem,
    callback_url,
    check_all,
    check_issuer,
    variable_prefix,
)
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.oidc import PutOidcProviders
from custody.sign_on import provider_store
from custody.sign_on.provider_store import StoredProvider


async def read(ports: Ports, tenant: str) -> OidcProviders:
    """The providers, without any secret."""
    return _to_public(ports, tenant, await provider_store.providers(ports.pool, tenant))


async def put(ports: Ports, caller: SessionCaller, body: OidcProvidersBody) -> Answered[OidcProviders]:
    """Replace all of them; all, or none if something is wrong with one."""
    tenant, public_url = caller.tenant, ports.deployment.public_url
    _check_before(body.providers, public_url)
    for provider in body.providers:
        if provider.client_secret_env is not None:
            await client_secrets.check(ports, tenant, provider.client_secret_env)
    providers = check_all(await _complete(ports, tenant, body.providers), tenant, public_url)
    answered = await ports.workers.ask(
        PutOidcProviders([msgspec.to_builtins(provider) for provider in providers]), caller
    )
    stored = [provider_store.of_state(state) for state in answered.answer.providers]
    return Answered(_to_public(ports, tenant, stored), answered.replayed)


def _check_before(providers: Sequence[OidcProviderBody], public_url: str) -> None:
    """Check what can be checked without asking anybody."""
    seen: set[str] = set()
    for index, provider in enumerate(providers):
        try:
            if provider.id in seen:
                raise ProviderProblem("id", "It is given twice.")
            check_issuer(provider.issuer, public_url)
        except ProviderProblem as problem:
            raise problem.of(index) from None
        seen.add(provider.id)


async def _complete(ports: Ports, tenant: str, providers: Sequence[OidcProviderBody]) -> list[OidcProvider]:
    issuers = list({provider.issuer for provider in providers})
    asked = await asyncio.gather(*(discover(ports.fetcher, tenant, issuer) for issuer in issuers))
    found = dict(zip(issuers, asked, strict=True))
    done = []
    for index, provider in enumerate(providers):
        try:
            done.append(complete(provider, found[provider.issuer], f"providers[{index}]", ports.deployment.public_url))
        except ProviderProblem as problem:
            raise problem.of(index) from None
    return done


def _to_public(ports: Ports, tenant: str, stored: Sequence[StoredProvider]) -> OidcProviders:
    public_url = ports.deployment.public_url
    return OidcProviders(
        providers=[_one(ports, tenant, one) for one in stored],
        callback_url_template=callback_url(public_url, tenant, "{id}"),
        secret_variable_prefix=variable_prefix(tenant),
    )


def _one(ports: Ports, tenant: str, stored: StoredProvider) -> ShownOidcProvider:
    provider, name = stored.provider, stored.provider.client_secret_env
    given = {field: getattr(provider, field) for field in OidcProvider.__struct_fields__}
    return ShownOidcProvider(
        callback_url=callback_url(ports.deployment.public_url, tenant, provider.id),
        client_secret_set=None if name is None else name in ports.oidc_secrets,
        keys_fetched_at=stored.keys_fetched_at,
        keys_problem=stored.keys_problem,
        last_test=stored.last_test,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        **given,
    )
