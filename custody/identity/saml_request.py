"""The request that sends a person to their identity provider: an AuthnRequest, by the binding HTTP-Redirect.

It is not signed: an identity provider answers only to the ACS URL that is configured there, and the answer is held
against the request id that the caller keeps.
"""

import re
import zlib
from base64 import b64encode
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import quote

from custody.identity.saml_shape import ASSERTION, PROTOCOL

POST: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_REQUEST_ID = re.compile(r"_[A-Za-z0-9_-]{43}\Z")
# The binding allows 80 bytes.
_RELAY_STATE = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")


def entity_id(public_url: str, tenant: str) -> str:
    """The name of a tenant's service provider, which is the address of its metadata."""
    return f"{public_url}/auth/saml/{tenant}/metadata"


def acs_url(public_url: str, tenant: str) -> str:
    """Build the address for the identity provider's answers (assertion consumer service)."""
    return f"{public_url}/auth/saml/{tenant}/acs"


def authn_request(request_id: str, *, issuer: str, acs: str, destination: str, now: datetime) -> str:
    """The XML of a request: `_` and 43 characters of base64url are its id, `issuer` our entity id."""
    if not _REQUEST_ID.match(request_id):
        raise ValueError("a request id is _ and 43 characters of base64url")
    return (
        f'<samlp:AuthnRequest xmlns:samlp="{PROTOCOL}" xmlns:saml="{ASSERTION}" ID="{request_id}" Version="2.0"'
        f' IssueInstant="{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" Destination="{escape(destination)}"'
        f' ProtocolBinding="{POST}" AssertionConsumerServiceURL="{escape(acs)}">'
        f"<saml:Issuer>{escape(issuer)}</saml:Issuer></samlp:AuthnRequest>"
    )


def redirect_url(destination: str, request: str, relay_state: str) -> str:
    """Build the browser's address: the request deflated into a query, behind the one that the address has already."""
    if "#" in destination or not _RELAY_STATE.match(relay_state):
        raise ValueError("an address with a fragment, or a RelayState that is not 1 to 80 characters of base64url")
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = b64encode(packer.compress(request.encode()) + packer.flush()).decode()
    begin = "" if destination.endswith(("?", "&")) else "&" if "?" in destination else "?"
    return f"{destination}{begin}SAMLRequest={quote(packed, safe='')}&RelayState={relay_state}"
