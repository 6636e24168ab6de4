"""A browser's way through a tenant's SAML provider, and what the tenant's administrators see of it."""

import msgspec

from api.areas.sign_on.saml_metadata import service_provider
from api.areas.sign_on.saml_types import AcsForm, IdpCertificate, SamlSso, ServiceProvider
from api.areas.sign_on.sign_in import COOKIE_SECONDS, browser_of, check_challenge_method, end_flow
from api.areas.sign_on.types import SamlCookies, SignOnQuery
from custody.identity.saml_certificates import IdpCertificateInvalid, read_certificates
from custody.identity.saml_config import SamlConfig
from custody.identity.saml_request import acs_url, entity_id
from custody.kit import clock
from custody.kit.answer_kinds import Cookie, Document, Page, Redirect
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.ports import Ports
from custody.protocol.identity.sign_on import BeginSignIn, FinishSaml, PutSaml, SavedSaml
from custody.sign_on import store

# Not the registered samlmetadata+xml: generators of clients know no such type, and every identity provider reads this.
METADATA = "text/xml"


async def begin(ports: Ports, origin: Origin, tenant: str, cookies: SamlCookies, query: SignOnQuery) -> Redirect:
    """Send the browser to the tenant's identity provider."""
    if not query.test:
        check_challenge_method(query.code_challenge_method)
    browser = browser_of(cookies.flow)
    message = BeginSignIn(
        kind="saml",
        provider="saml",
        browser=browser,
        tenant=tenant,
        redirect_uri=query.redirect_uri,
        code_challenge=query.code_challenge[:128],
        state=query.state[:1024],
        test=query.test or None,
    )
    begun = await ports.workers.tell(message, origin)
    # The provider's page posts its answer here from another site.
    return Redirect(begun.url, Cookie("custody-saml", browser, COOKIE_SECONDS, cross_site=True))


async def came_back(ports: Ports, origin: Origin, tenant: str, cookies: SamlCookies, form: AcsForm) -> Redirect | Page:
    """Hand the answer on, byte for byte, and send the browser on to the client."""
    message = FinishSaml(
        tenant=tenant, relay_state=form.relay_state, browser=cookies.flow[:512], response=form.saml_response
    )
    return end_flow(await ports.workers.tell(message, origin))


async def metadata(ports: Ports, tenant: str) -> Document:
    """Describe this service for a tenant's identity provider; of any tenant, and of one only its key for encryption."""
    public_url = ports.deployment.public_url
    keys = await store.saml_keys(ports.pool, tenant)
    text = service_provider(
        entity_id(public_url, tenant), acs_url(public_url, tenant), keys[0].certificate if keys else None
    )
    return Document(text, METADATA, name="custody-metadata.xml")


async def read(ports: Ports, tenant: str) -> SamlSso:
    """The configuration, what to copy into the identity provider, and the last try."""
    stored = await store.saml(ports.pool, tenant)
    config = msgspec.json.decode(stored.document, type=SamlConfig) if stored else None
    return SamlSso(
        **(msgspec.structs.asdict(config) if config else {}),
        updated_at=clock.iso_or_none(stored.updated_at) if stored else None,
        certificates=_certificates(config) if config else [],
        encryption_keys=await store.saml_keys(ports.pool, tenant),
        service_provider=_service_provider(ports.deployment.public_url, tenant),
        last_test=await store.last_test(ports.pool, tenant, "saml"),
    )


async def put(ports: Ports, caller: SessionCaller, config: SamlConfig) -> Answered[SamlSso]:
    """Replace the configuration."""
    answer = await ports.workers.ask(PutSaml(msgspec.to_builtins(config)), caller)
    saved: SavedSaml = answer.answer
    stored = msgspec.json.decode(saved.document, type=SamlConfig)
    data = SamlSso(
        **msgspec.structs.asdict(stored),
        updated_at=saved.updated_at,
        certificates=_certificates(stored),
        encryption_keys=await store.saml_keys(ports.pool, caller.tenant),
        service_provider=_service_provider(ports.deployment.public_url, caller.tenant),
        last_test=None,
    )
    return Answered(data, replayed=answer.replayed)


def _service_provider(public_url: str, tenant: str) -> ServiceProvider:
    # The metadata's address is the entity id.
    entity = entity_id(public_url, tenant)
    return ServiceProvider(entity, acs_url(public_url, tenant), entity)


def _certificates(config: SamlConfig) -> list[IdpCertificate]:
    try:
        found = read_certificates(config.idp_cert_pems)
    except IdpCertificateInvalid:
        # Stored by an older release, whose rules were others.
        return []
    return [IdpCertificate(one.subject, clock.iso(one.not_after), one.fingerprint) for one in found]
