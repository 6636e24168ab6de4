"""A tenant's OIDC providers."""

from api.areas.sign_on import oidc_providers
from api.areas.sign_on.client_secrets import OidcSecretAmbiguous
from api.areas.sign_on.discovery import OidcDiscoveryFailed
from api.areas.sign_on.oidc_types import OidcProviders, OidcProvidersBody
from api.http.bodies import MAX_CONFIG_BODY
from api.http.endpoint import Routes
from api.http.who import admin, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.oidc import PutOidcProviders

routes = Routes("/tenants/<tenant_id>/oidc-providers", tag="Sign-on")


@routes.get("", who=admin)
async def get_oidc_providers(ports: Ports, caller: SessionCaller, tenant_id: str) -> OidcProviders:
    """Get the OIDC providers, what to copy to each, and the state of its keys; never a secret."""
    return await oidc_providers.read(ports, caller.tenant)


@routes.put(
    "",
    max_body=MAX_CONFIG_BODY,
    who=asking(PutOidcProviders),
    fails=(OidcDiscoveryFailed, OidcSecretAmbiguous),
)
async def put_oidc_providers(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: OidcProvidersBody
) -> Answered[OidcProviders]:
    """Replace all OIDC providers.

    Each issuer is asked for its discovery document: what was left out is filled from it, and what was given must agree.
    Without a document all three addresses are required. Afterwards nothing changes by itself but the issuer's keys.
    """
    return await oidc_providers.put(ports, caller, body)
