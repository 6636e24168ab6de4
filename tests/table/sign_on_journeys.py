"""Requests of sign-on that succeed: each is a browser's that was at an identity provider."""

import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from tests.fixtures.saml_sign_on import SamlTenant
from tests.fixtures.sign_on import Flow, verified_domain
from tests.outside.saml_answers import form_value

if TYPE_CHECKING:
    from tests.table.world import World

# The browser, what stands in the path, the body, and the query.
Step = tuple[Flow, dict[str, str], Any, str]


def begin_oauth(world: "World") -> Step:
    flow = _flow(world)
    return flow, {"oauth_provider": "google"}, None, urlencode(flow.query)


def finish_oauth(world: "World") -> Step:
    flow = _flow(world)
    return flow, {"oauth_provider": "google"}, None, urlsplit(_at_google(world, flow)).query


def exchange(world: "World") -> Step:
    flow = _flow(world)
    code = flow.code(world.oauth.google.browse)
    return flow, {}, {"code": code, "redirect_uri": flow.query["redirect_uri"], "code_verifier": flow.verifier}, ""


def exchange_of_google(world: "World") -> Step:
    flow, _path, body, query = exchange(world)
    return flow, {"oauth_provider": "google"}, {name: body[name] for name in ("code", "code_verifier")}, query


def begin_oidc(world: "World") -> Step:
    flow = _oidc(world)
    return flow, {"oidc_provider": _name(world)}, None, urlencode(flow.query)


def finish_oidc(world: "World") -> Step:
    flow = _oidc(world)
    callback = world.oidc.browse(flow.provider_url())
    return flow, {"oidc_provider": _name(world)}, None, urlsplit(callback).query


def begin_saml(world: "World") -> Step:
    flow = _saml(world).flow()
    return flow, {"sign_on_tenant": world.tenant.id}, None, urlencode(flow.query)


def finish_saml(world: "World") -> Step:
    tenant = _saml(world)
    flow = tenant.flow().leave()
    form = {"SAMLResponse": form_value(flow.answer().sign(tenant.key)), "RelayState": flow.relay_state}
    return flow, {"sign_on_tenant": world.tenant.id}, form, ""


def saml_config(world: "World") -> dict[str, Any]:
    return _tenant(world).config()


def saved_saml(world: "World") -> None:
    """Let the tenant have a SAML provider."""
    _saml(world)


def _tenant(world: "World") -> SamlTenant:
    return SamlTenant(world.service, world.owner, _domain(world))


def _saml(world: "World") -> SamlTenant:
    tenant = _tenant(world)
    assert tenant.put().status_code == 200
    return tenant


def _domain(world: "World") -> str:
    path = f"/tenants/{world.tenant.id}/sso-domains"
    proven = [one["domain"] for one in world.owner.ok("GET", path) if one["status"] == "verified"]
    return proven[0] if proven else verified_domain(world.owner, world.dns_server)


def _flow(world: "World") -> Flow:
    world.oauth.google.person = {"sub": secrets.token_hex(8)}
    return Flow(world.service, "/auth/oauth/google/authorize")


def _at_google(world: "World", flow: Flow) -> str:
    return world.oauth.google.browse(flow.provider_url())


def _name(world: "World") -> str:
    return f"{world.tenant.id}~idp"


def _oidc(world: "World") -> Flow:
    idp = world.oidc
    idp.client_secret, name = None, secrets.token_hex(4)
    idp.person = {"sub": name, "email": f"{name}@{_domain(world)}", "email_verified": True}
    provider = {"id": "idp", "issuer": idp.issuer, "clientId": idp.client_id, "allowJitProvisioning": True}
    world.owner.ok("PUT", f"/tenants/{world.tenant.id}/oidc-providers", {"providers": [provider]})
    return Flow(world.service, f"/auth/oidc/{_name(world)}/authorize")
