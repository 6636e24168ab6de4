"""A tenant's SAML provider."""

from api.areas.sign_on import saml
from api.areas.sign_on.saml_types import SamlKeyBody, SamlSso
from api.http.bodies import MAX_SAML_CONFIG_BODY
from api.http.endpoint import Routes
from api.http.who import admin, asking
from custody.identity.saml_certificates import IdpCertificateInvalid
from custody.identity.saml_config import InvalidSaml, SamlConfig
from custody.identity.saml_groups import GroupMappingRefused
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.sign_on import DeletedSaml, DeleteSaml, MakeSamlKey, PutSaml, SamlKey

routes = Routes("/tenants/<tenant_id>/saml-sso", tag="Sign-on")


@routes.get("", who=admin)
async def get_saml_sso(ports: Ports, caller: SessionCaller, tenant_id: str) -> SamlSso:
    """Get the SAML configuration, what to copy into the identity provider, and the last try."""
    return await saml.read(ports, caller.tenant)


@routes.put(
    "",
    who=asking(PutSaml),
    max_body=MAX_SAML_CONFIG_BODY,
    fails=(GroupMappingRefused, IdpCertificateInvalid, InvalidSaml),
)
async def put_saml_sso(ports: Ports, caller: SessionCaller, tenant_id: str, body: SamlConfig) -> Answered[SamlSso]:
    """Replace the SAML configuration. Try it with `POST /tenants/{id}/sign-on/test` before you enable it."""
    return await saml.put(ports, caller, body)


@routes.delete("", who=asking(DeleteSaml))
async def delete_saml_sso(ports: Ports, caller: SessionCaller, tenant_id: str) -> Answered[DeletedSaml]:
    """Delete the SAML configuration and the keys for encrypted assertions; nobody signs in by it any more."""
    return await ports.workers.ask(DeleteSaml(), caller)


@routes.post("/encryption-keys", who=asking(MakeSamlKey), status=201)
async def make_saml_key(ports: Ports, caller: SessionCaller, tenant_id: str, body: SamlKeyBody) -> Answered[SamlKey]:
    """Make the key that the identity provider encrypts assertions for; the tenant's metadata show it at once.

    The keys before it open for 30 days more, unless `formerDays` says otherwise: until then the identity provider must
    have the new certificate. With `formerDays: 0` they end at once.
    """
    return await ports.workers.ask(MakeSamlKey(body.former_days), caller)
