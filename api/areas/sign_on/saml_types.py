"""A tenant's SAML provider as its administrators see it, and the form that the provider's page sends."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.saml_groups import GroupMapping
from custody.kit.described import Instant, described
from custody.protocol.identity.sign_on import SAML_MOST, FormerDays, SamlKey
from custody.sign_on.try_types import LastTest


class ServiceProvider(msgspec.Struct, frozen=True, rename="camel"):
    """The values to copy into the identity provider; the same before anything is saved."""

    sp_entity_id: Annotated[str, described("The entity id of this service for this tenant (audience).")]
    acs_url: Annotated[str, described("Endpoint for the provider's answers (assertion consumer service).")]
    metadata_url: Annotated[str, described("The same as an XML document.")]


class IdpCertificate(msgspec.Struct, frozen=True, rename="camel"):
    """A certificate that answers may be signed with."""

    subject: Annotated[str, described("Subject of the certificate.")]
    not_after: Annotated[Instant, described("Time of expiry; an expired one still counts, and the checklist warns.")]
    fingerprint: Annotated[str, described("SHA-256 of the certificate.")]


class SamlSso(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant's SAML provider: the configuration as it was sent, and what belongs to it."""

    enabled: Annotated[bool, described("True if people may sign in by it; false if nothing is saved.")] = False
    idp_entity_id: Annotated[str | None, described("The entity id of the identity provider.")] = None
    idp_sso_url: Annotated[str | None, described("Sign-in endpoint of the identity provider.")] = None
    idp_cert_pems: Annotated[tuple[str, ...], described("Certificates that it signs with, each as PEM.")] = ()
    want_assertions_encrypted: Annotated[bool, described("True to refuse an assertion that is not encrypted.")] = False
    email_attribute: Annotated[str | None, described("The attribute with the e-mail address.")] = None
    groups_attribute: Annotated[str | None, described("The attribute with the person's groups.")] = None
    group_role_mappings: Annotated[tuple[GroupMapping, ...], described("Roles by group.")] = ()
    allow_jit_provisioning: Annotated[
        bool, described("True to make people members at their first sign-in, without an invitation.")
    ] = False
    updated_at: Annotated[Instant | None, described("Time of saving; null: nothing is saved.")]
    certificates: Annotated[list[IdpCertificate], described("Its certificates, as they are read.")]
    encryption_keys: Annotated[list[SamlKey], described("Keys that open assertions; the first is in the metadata.")]
    service_provider: Annotated[ServiceProvider, described("Values to copy into the identity provider.")]
    last_test: Annotated[LastTest | None, described("Result of the last test.")]


class SamlKeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The end of the keys before the new one."""

    former_days: FormerDays = 30


class AcsForm(
    msgspec.Struct,
    frozen=True,
    rename={"saml_response": "SAMLResponse", "relay_state": "RelayState"}.get,
):
    """The form of the HTTP-POST binding."""

    saml_response: Annotated[
        Annotated[str, Meta(min_length=1, max_length=SAML_MOST)], described("The answer, in base64.")
    ]
    relay_state: Annotated[
        Annotated[str, Meta(max_length=512)], described("Relay state that came with the request.")
    ] = ""

    def __repr__(self) -> str:
        return "AcsForm()"
