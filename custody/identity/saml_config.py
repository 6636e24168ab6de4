"""A tenant's SAML configuration, as it is sent, stored and returned."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.saml_certificates import MAX_CERTIFICATES, read_certificates, write_pem
from custody.identity.saml_groups import MAX_MAPPINGS, GroupMapping, check_mappings
from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.outside_urls import NotOutside
from custody.kit.outside_urls import check as check_url

Attribute = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[\x21-\x7e]+\Z")]


class InvalidSaml(Invalid):
    """The SAML configuration is not valid; the message names the field."""


class SamlConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Settings that an identity provider's answers are checked against."""

    enabled: Annotated[bool, described("True if people may sign in by it; a test works even if false.")] = True
    idp_entity_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[\x21-\x7e]+\Z")],
        described("The entity id of the identity provider, exactly as it writes it."),
    ]
    idp_sso_url: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2048)],
        described("Sign-in endpoint of the identity provider (HTTP-Redirect binding); public https."),
    ]
    idp_cert_pems: Annotated[
        Annotated[tuple[Annotated[str, Meta(max_length=16_384)], ...], Meta(max_length=MAX_CERTIFICATES)],
        described("Certificates that it signs with, each as PEM or as its base64 alone: one to five."),
    ]
    want_assertions_encrypted: Annotated[
        bool, described("True to refuse an assertion that is not encrypted for the tenant's key.")
    ] = False
    email_attribute: Annotated[
        Attribute | None, described("The attribute with the e-mail address; without it the usual ones are tried.")
    ] = None
    groups_attribute: Annotated[Attribute | None, described("The attribute with the person's groups.")] = None
    group_role_mappings: Annotated[
        Annotated[tuple[GroupMapping, ...], Meta(max_length=MAX_MAPPINGS)],
        described("Roles by group; the most powerful one counts. Never `owner`."),
    ] = ()
    allow_jit_provisioning: Annotated[
        bool, described("True to make people members at their first sign-in, without an invitation.")
    ] = False


def check(config: SamlConfig, *, public_url: str) -> SamlConfig:
    """The configuration as it may be stored, or a refusal that names the field and the cure."""
    try:
        check_url(config.idp_sso_url, public_url=public_url)
    except NotOutside as problem:
        raise InvalidSaml(f"idpSsoUrl: {problem.sentence}", fields=["idpSsoUrl"]) from None
    pems = tuple(map(write_pem, config.idp_cert_pems))
    read_certificates(pems)
    check_mappings(config.group_role_mappings)
    return msgspec.structs.replace(config, idp_cert_pems=pems)
