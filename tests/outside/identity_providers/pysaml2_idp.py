"""A SAML identity provider made of pysaml2: `python -m ... XMLSEC1 OPTIONS`, with the addresses of the node ones."""

import sys
import traceback
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import quoteattr

import msgspec
import saml2.entity
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.assertion import Policy
from saml2.attribute_converter import AttributeConverter
from saml2.authn_context import PASSWORDPROTECTEDTRANSPORT
from saml2.config import IdPConfig
from saml2.mdstore import MetadataStore
from saml2.metadata import entity_descriptor
from saml2.saml import NAME_FORMAT_BASIC, NameID
from saml2.server import Server
from saml2.sigver import SecurityContext, pre_encryption_part
from saml2.xmldsig import DIGEST_SHA256, SIG_ECDSA_SHA256, SIG_RSA_SHA256

from tests.outside.identity_providers.saml import Says
from tests.outside.processes import READY

# The library knows RSA alone to be allowed; the program that signs for it knows more.
_XMLENC11 = "http://www.w3.org/2009/xmlenc11#"
# It says itself how it encrypts, by the triple DES that nobody should take; the program knows better ones.
pre_encryption_part.__kwdefaults__["msg_enc"] = f"{_XMLENC11}aes256-gcm"
SecurityContext.encrypt_assertion.__defaults__ = ("aes-256", None)
saml2.entity.SIG_ALLOWED_ALG += (("SIG_ECDSA_SHA256", SIG_ECDSA_SHA256),)


class Idp:
    """The library's server, and what a test tells it."""

    def __init__(self, program: str, given: dict[str, str], url: str) -> None:
        sso_url = given.get("sso_url", f"{url}/sso")
        self._config = IdPConfig().load(
            {
                "entityid": given.get("entity_id", f"{url}/metadata"),
                "key_file": given["key"],
                "cert_file": given["certificate"],
                "xmlsec_binary": program,
                "service": {"idp": {"endpoints": {"single_sign_on_service": [(sso_url, BINDING_HTTP_REDIRECT)]}}},
            }
        )
        self._config.metadata = MetadataStore([], self._config)
        # Its own tables would turn the names of attributes into others.
        literal = AttributeConverter()
        literal.from_dict({"identifier": NAME_FORMAT_BASIC, "to": {}, "fro": {}})
        self._config.attribute_converters = [literal]
        self._algorithm = SIG_RSA_SHA256 if given["algorithm"] == "rsa" else SIG_ECDSA_SHA256
        self._server = Server(config=self._config)
        self.says = Says()
        self._known: set[str] = set()

    @property
    def metadata(self) -> str:
        return str(entity_descriptor(self._config))

    def page(self, query: dict[str, list[str]]) -> str:
        """Answer an authentication request with the library's form, which submits itself."""
        says = self.says
        asked = self._server.parse_authn_request(query["SAMLRequest"][0], BINDING_HTTP_REDIRECT).message
        acs, audience = says.acs_url or asked.assertion_consumer_service_url, says.audience or asked.issuer.text
        if audience not in self._known:
            self._known.add(audience)
            self._config.metadata.load("inline", _service(audience, acs))
        made = self._server.create_authn_response(
            {name: list(values) for name, values in says.attributes},
            asked.id,
            acs,
            audience,
            name_id=NameID(format=says.name_id_format, text=says.name_id),
            release_policy=Policy(
                {"default": {"name_form": NAME_FORMAT_BASIC, "lifetime": {"seconds": says.lifetime_seconds}}}
            ),
            authn={"class_ref": PASSWORDPROTECTEDTRANSPORT},
            sign_assertion=says.sign_assertion,
            sign_response=says.sign_response,
            sign_alg=self._algorithm,
            **_encryption(says.encrypt_for),
            digest_alg=DIGEST_SHA256,
        )
        relay_state = query.get("RelayState", [""])[0]
        sent: Any = self._server.apply_binding(BINDING_HTTP_POST, str(made), acs, relay_state, response=True)
        return str(sent["data"])


def _encryption(certificate: str | None) -> dict[str, Any]:
    if certificate is None:
        return {}
    return {"encrypt_assertion": True, "encrypt_cert_assertion": certificate, "encrypted_advice_attributes": False}


def _service(entity_id: str, acs_url: str) -> str:
    """The least that the library must know of a service."""
    return (
        f'<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID={quoteattr(entity_id)}>'
        '<SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
        f'<AssertionConsumerService index="0" Binding="{BINDING_HTTP_POST}" Location={quoteattr(acs_url)}/>'
        "</SPSSODescriptor></EntityDescriptor>"
    )


class _Connection(BaseHTTPRequestHandler):
    idp: Idp

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        try:
            if parts.path == "/metadata":
                self._answer(200, self.idp.metadata)
            else:
                self._answer(200, self.idp.page(parse_qs(parts.query)))
        except Exception:
            self._answer(400, traceback.format_exc())

    def do_PUT(self) -> None:
        self.idp.says = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])), type=Says)
        self._answer(200, "")

    def _answer(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def _main(program: str, options: str) -> None:
    with HTTPServer(("127.0.0.1", 0), _Connection) as server:
        address = f"127.0.0.1:{server.server_address[1]}"
        _Connection.idp = Idp(program, msgspec.json.decode(options), f"http://{address}")
        print(f"{READY}{address}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _main(*sys.argv[1:])
