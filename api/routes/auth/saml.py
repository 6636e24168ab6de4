"""Sign-in at a tenant's SAML provider: the Web Browser SSO profile, begun here, answered by HTTP-POST."""

from api.areas.sign_on import saml
from api.areas.sign_on.saml_types import AcsForm
from api.areas.sign_on.types import SamlCookies, SignOnQuery
from api.http.bodies import MAX_SAML_BODY
from api.http.endpoint import Routes
from api.http.who import asking, public
from custody.kit.answer_kinds import Document, Page, Redirect
from custody.kit.callers import Origin
from custody.ports import Ports
from custody.protocol.identity.sign_on import BeginSignIn, FinishSaml

routes = Routes("/auth/saml/<sign_on_tenant>", tag="Sign-on", hardened=False)


@routes.get(
    "/login",
    who=asking(BeginSignIn),
    status=302,
    limit="sso",
    private=True,
    browsed=True,
    headers_too=("Set-Cookie",),
)
async def begin_saml(
    ports: Ports, origin: Origin, sign_on_tenant: str, cookies: SamlCookies, query: SignOnQuery
) -> Redirect:
    """Send the browser to a tenant's SAML provider. Refusals are as on `/auth/oauth/{provider}/authorize`."""
    return await saml.begin(ports, origin, sign_on_tenant, cookies, query)


@routes.get("/metadata", who=public, media="text/xml")
async def get_saml_metadata(ports: Ports, sign_on_tenant: str) -> Document:
    """Get what a tenant's identity provider must know of this service, as SAML metadata."""
    return await saml.metadata(ports, sign_on_tenant)


@routes.post(
    "/acs",
    who=asking(FinishSaml),
    status=303,
    limit="callback",
    max_body=MAX_SAML_BODY,
    form_only=True,
    private=True,
    browsed=True,
    media="text/html",
)
async def finish_saml(
    ports: Ports, origin: Origin, sign_on_tenant: str, cookies: SamlCookies, body: AcsForm
) -> Redirect | Page:
    """Take the answer that the identity provider's page posts, and send the browser back to the client."""
    return await saml.came_back(ports, origin, sign_on_tenant, cookies, body)
