"""The permitted ways of a browser after a provider: addresses from lists under MACs, and the service's own pages.

The address decides who gets the code, so it is matched here and never believed of the api.
"""

import re
from typing import Any

from custody.identity.app_clients import AppClient
from custody.protocol.identity.refusals import BadClientState, BadRedirectUri, ProviderAbsent, UnknownAppClient
from custody.protocol.identity.sign_on import BeginSignIn
from custody.worker.acts import enter
from identity.administration import app_clients
from identity.context import Identity

# The service's own pages where people sign in.
OWN_PAGES = ("/device", "/invitation", "/approve", "/sign-in")
# What the client wants back: it goes into an address, so nothing that ends a header or hides in a text.
STATE = re.compile(r"[\x20-\x7e]{0,512}")


async def demand(connection: Any, identity: Identity, message: BeginSignIn) -> None:
    """Raise unless the redirect URL is on the list that counts, and the client lets people in by this provider.

    With an app client its list counts, without one that of the tenant's default client, without a tenant the
    operator's.
    """
    if not STATE.fullmatch(message.state):
        raise BadClientState
    client = await _client(connection, identity, message.tenant, message.client) if message.tenant is not None else None
    if client is None and message.client is not None:
        raise UnknownAppClient
    switched_off = [] if client is None else [name for name, on in client.login_methods.oauth.items() if not on]
    if message.kind == "oauth" and message.provider in switched_off:
        raise ProviderAbsent
    listed = client.allowed_redirect_urls if client is not None else ()
    if message.tenant is None:
        listed = identity.login_redirects
    if not is_own(identity, message.redirect_uri) and message.redirect_uri not in listed:
        raise BadRedirectUri


def is_own(identity: Identity, address: str) -> bool:
    """Say whether an address is one of the service's own pages."""
    return address in [f"{identity.public_url}{page}" for page in OWN_PAGES]


async def demand_listed(connection: Any, identity: Identity, tenant: str, client: str, redirect_uri: str) -> AppClient:
    """Find this app client, if it is enabled and lists the redirect URL, character by character."""
    found = await _client(connection, identity, tenant, client)
    if found is None or redirect_uri not in found.allowed_redirect_urls:
        raise BadRedirectUri
    return found


def is_sign_in_page(identity: Identity, address: str) -> bool:
    """Say whether an address is our own page where people sign in for an app client."""
    return address == f"{identity.public_url}/sign-in"


async def _client(connection: Any, identity: Identity, tenant: str, client: str | None) -> AppClient | None:
    """The enabled client that is named, or the tenant's enabled default one."""
    await enter(connection, tenant)
    clients = [one for one in (await app_clients.load(connection, identity, tenant)).values() if one.enabled]
    if client is None:
        return next((one for one in clients if one.is_default), None)
    named = client.removeprefix(f"{tenant}/")
    found = next((one for one in clients if one.id == named), None)
    if found is None:
        raise UnknownAppClient
    return found
