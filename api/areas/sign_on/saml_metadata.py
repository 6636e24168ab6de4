"""The metadata of a tenant's service provider: what an identity provider's administrator loads instead of typing.

It offers what is implemented and nothing else: sign-in by HTTP-POST, and encryption where there is a key for it. No
logout, no signature.
"""

from html import escape
from typing import Final

from custody.identity.saml_request import POST
from custody.identity.saml_shape import ENCRYPTION, ENCRYPTION_1_1, PROTOCOL
from custody.identity.saml_signature import DSIG

_METADATA: Final = "urn:oasis:names:tc:SAML:2.0:metadata"
# The best first: identity providers take the first that they know.
_METHODS: Final = (
    f"{ENCRYPTION_1_1}aes256-gcm",
    f"{ENCRYPTION_1_1}aes128-gcm",
    f"{ENCRYPTION}rsa-oaep-mgf1p",
    f"{ENCRYPTION_1_1}rsa-oaep",
)
_FORMATS: Final = (
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
)


def service_provider(entity: str, acs: str, certificate: str | None) -> str:
    """The EntityDescriptor of the service provider with this entity id and ACS URL, and the certificate of its key."""
    formats = "".join(f"    <md:NameIDFormat>{one}</md:NameIDFormat>\n" for one in _FORMATS)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<md:EntityDescriptor xmlns:md="{_METADATA}" entityID="{escape(entity)}">\n'
        '  <md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true"'
        f' protocolSupportEnumeration="{PROTOCOL}">\n'
        f"{_key_descriptor(certificate) if certificate else ''}"
        f"{formats}"
        f'    <md:AssertionConsumerService Binding="{POST}" Location="{escape(acs)}" index="0" isDefault="true"/>\n'
        "  </md:SPSSODescriptor>\n"
        "</md:EntityDescriptor>\n"
    )


def _key_descriptor(certificate: str) -> str:
    bare = "".join(line for line in certificate.splitlines() if not line.startswith("-----"))
    methods = "".join(f'      <md:EncryptionMethod Algorithm="{one}"/>\n' for one in _METHODS)
    return (
        '    <md:KeyDescriptor use="encryption">\n'
        f'      <ds:KeyInfo xmlns:ds="{DSIG}"><ds:X509Data>'
        f"<ds:X509Certificate>{bare}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>\n"
        f"{methods}"
        "    </md:KeyDescriptor>\n"
    )
