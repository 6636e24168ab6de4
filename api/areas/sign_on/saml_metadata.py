"""The metadata of a tenant's service provider: what an identity provider's administrator loads instead of typing.

It offers what is implemented and nothing else: sign-in by HTTP-POST. No logout, no key for encryption, no signature.
"""

from html import escape
from typing import Final

from custody.identity.saml_request import POST
from custody.identity.saml_shape import PROTOCOL

_METADATA: Final = "urn:oasis:names:tc:SAML:2.0:metadata"
_FORMATS: Final = (
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
)


def service_provider(entity: str, acs: str) -> str:
    """The EntityDescriptor of the service provider with this entity id and ACS URL."""
    formats = "".join(f"    <md:NameIDFormat>{one}</md:NameIDFormat>\n" for one in _FORMATS)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<md:EntityDescriptor xmlns:md="{_METADATA}" entityID="{escape(entity)}">\n'
        '  <md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true"'
        f' protocolSupportEnumeration="{PROTOCOL}">\n'
        f"{formats}"
        f'    <md:AssertionConsumerService Binding="{POST}" Location="{escape(acs)}" index="0" isDefault="true"/>\n'
        "  </md:SPSSODescriptor>\n"
        "</md:EntityDescriptor>\n"
    )
