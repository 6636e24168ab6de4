"""Identity providers that others wrote: each flow walked as a browser does it, each signature judged by a library."""

import base64
import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import jwt
import pytest
import xmlsec
from lxml import etree

from tests.outside import loopback, npm
from tests.outside.certificates import Authority
from tests.outside.identity_providers.forms import query_of
from tests.outside.identity_providers.oidc import OidcClient, OidcProvider, running_oidc_provider
from tests.outside.identity_providers.saml import KINDS, PERSISTENT, SamlProvider, running_saml_provider

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

NAMES = {"saml": "urn:oasis:names:tc:SAML:2.0:assertion", "ds": "http://www.w3.org/2000/09/xmldsig#"}
SERVICE, ACS, RELAY_STATE = "https://app.test/metadata", "https://app.test/acs", "r&\"<'" + "s" * 38
REQUEST = (
    '<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_request-1" Version="2.0"'
    ' xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" IssueInstant="{now:%Y-%m-%dT%H:%M:%SZ}" Destination="{sso}"'
    f' AssertionConsumerServiceURL="{ACS}"><saml:Issuer>{SERVICE}</saml:Issuer></samlp:AuthnRequest>'
)
VERIFIER = "v" * 43
BASIC = OidcClient("by-basic", ("http://127.0.0.1:9/callback",), "the secret")
POST = OidcClient("by-post", ("https://app.test/callback",), "the secret", "client_secret_post")
PUBLIC = OidcClient("public", ("https://app.test/callback",), None, "none", "ES256")


def authn_url(provider: SamlProvider) -> str:
    request = REQUEST.format(now=datetime.now(UTC), sso=provider.sso_url).encode()
    deflated = zlib.compress(request, wbits=-15)
    query = urlencode({"SAMLRequest": base64.b64encode(deflated), "RelayState": RELAY_STATE})
    return f"{provider.sso_url}?{query}"


def verify(document: bytes, certificate: str) -> list[str]:
    """The elements whose signatures hold, all of which must."""
    names = []
    for signature in etree.fromstring(document).iter("{*}Signature"):
        signed = signature.getparent()
        context = xmlsec.SignatureContext()
        context.key = xmlsec.Key.from_memory(certificate, xmlsec.constants.KeyDataFormatCertPem)
        context.register_id(signed, "ID")
        context.verify(signature)
        names.append(etree.QName(signed).localname)
    return names


def texts(document: bytes, path: str) -> list[str]:
    return etree.fromstring(document).xpath(path, namespaces=NAMES)


# Importing that library takes seconds.
SAML = [pytest.param(kind, marks=pytest.mark.long) if kind == "pysaml2" else kind for kind in KINDS]


@pytest.fixture(scope="module", params=SAML)
def saml(request: pytest.FixtureRequest) -> Iterator[SamlProvider]:
    with running_saml_provider(request.param, sso_url="https://idp.test/sso") as started:
        yield started


@pytest.fixture(scope="module")
def oidc() -> Iterator[OidcProvider]:
    with running_oidc_provider([BASIC, POST, PUBLIC]) as started:
        yield started


def test_an_answer_says_what_it_was_told_and_its_signatures_hold(saml: SamlProvider) -> None:
    saml.says(
        name_id="bob-1", name_id_format=PERSISTENT, attributes={"mail": "bob@x.test", "groups": ("a", "<b & 'c'>")}
    )

    answer = saml.answer(authn_url(saml))

    found = answer.document
    assert (answer.acs_url, answer.fields["RelayState"]) == (ACS, RELAY_STATE)
    assert verify(found, saml.certificate) == ["Assertion"]
    assert texts(found, "//saml:Issuer/text()") == [saml.entity_id] * 2
    assert texts(found, "//saml:NameID/text() | //saml:NameID/@Format") == [PERSISTENT, "bob-1"]
    assert texts(found, "//saml:Audience/text()") == [SERVICE]
    assert texts(found, "//@InResponseTo") == ["_request-1"] * 2
    assert texts(found, "//@Destination | //@Recipient") == [ACS] * 2
    assert texts(found, "//saml:Attribute/@Name") == ["mail", "groups"]
    assert texts(found, "//saml:AttributeValue/text()") == ["bob@x.test", "a", "<b & 'c'>"]
    assert len(texts(found, "//saml:AuthnStatement")) == 1
    assert b"{" not in found


def test_it_signs_both_or_the_response_alone(saml: SamlProvider) -> None:
    saml.says(sign_response=True)
    both = saml.answer(authn_url(saml)).document
    saml.says(sign_response=True, sign_assertion=False)
    outer = saml.answer(authn_url(saml)).document

    assert verify(both, saml.certificate) == ["Response", "Assertion"]
    assert verify(outer, saml.certificate) == ["Response"]


def test_acs_and_audience_of_others_are_said_on_request(saml: SamlProvider) -> None:
    saml.says(acs_url="https://other.test/acs", audience="https://other.test/metadata")

    answer = saml.answer(authn_url(saml))

    assert answer.acs_url == "https://other.test/acs"
    assert texts(answer.document, "//saml:Audience/text()") == ["https://other.test/metadata"]


def test_its_metadata_names_what_an_administrator_copies(saml: SamlProvider) -> None:
    found = saml.metadata()

    bare = "".join(saml.certificate.splitlines()[1:-1])
    assert saml.entity_id in found
    assert saml.sso_url in found
    assert bare in "".join(found.split())


@pytest.mark.long
def test_one_of_them_signs_with_an_elliptic_curve() -> None:
    with running_saml_provider("pysaml2", entity_id="https://idp.test", algorithm="ec") as provider:
        provider.says(sign_response=True)
        found = provider.answer(authn_url(provider)).document

        assert verify(found, provider.certificate) == ["Response", "Assertion"]
        assert all(method.endswith("ecdsa-sha256") for method in texts(found, "//ds:SignatureMethod/@Algorithm"))


def code(provider: OidcProvider, client: OidcClient) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uris[0],
        "scope": "openid email",
        "state": "state-1",
        "nonce": "nonce-1",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    there = provider.answer(f"{provider.discovery['authorization_endpoint']}?{urlencode(query)}")
    found = query_of(there)
    assert there.startswith(client.redirect_uris[0])
    assert (found["state"], found["iss"]) == ("state-1", provider.issuer)
    return found["code"]


def claims(provider: OidcProvider, client: OidcClient, shown: str, ca_file: Path | None = None) -> dict[str, object]:
    form = {"grant_type": "authorization_code", "code": shown, "code_verifier": VERIFIER}
    form |= {"redirect_uri": client.redirect_uris[0]}
    by_basic = client.token_endpoint_auth_method == "client_secret_basic"
    if not by_basic:
        form |= {"client_id": client.client_id}
        form |= {"client_secret": client.client_secret} if client.client_secret else {}
    with loopback.client(ca_file=ca_file) as http:
        if by_basic:
            http.auth = (client.client_id, client.client_secret or "")
        answer = http.post(provider.discovery["token_endpoint"], data=form)
        http.auth = None
        keys = jwt.PyJWKSet.from_dict(http.get(provider.discovery["jwks_uri"]).json())
    assert answer.status_code == 200, answer.text
    token = answer.json()["id_token"]
    key = keys[jwt.get_unverified_header(token)["kid"]]
    wanted = client.id_token_signed_response_alg
    return jwt.decode(token, key, algorithms=[wanted], audience=client.client_id, issuer=provider.issuer)


@pytest.mark.parametrize("client", [BASIC, POST, PUBLIC], ids=lambda client: client.client_id)
def test_a_code_is_exchanged_for_a_token_that_its_keys_verify(oidc: OidcProvider, client: OidcClient) -> None:
    oidc.says("bob-1", email="bob@x.test", email_verified=False)

    found = claims(oidc, client, code(oidc, client))

    assert (found["sub"], found["email"], found["email_verified"]) == ("bob-1", "bob@x.test", False)
    assert found["nonce"] == "nonce-1"


@pytest.mark.parametrize("forget", [False, True])
def test_keys_are_rotated_between_authorization_and_token(oidc: OidcProvider, forget: bool) -> None:
    shown = code(oidc, PUBLIC)
    before = loopback.get(oidc.discovery["jwks_uri"]).json()["keys"]

    oidc.rotate_keys(forget=forget)

    after = loopback.get(oidc.discovery["jwks_uri"]).json()["keys"]
    assert claims(oidc, PUBLIC, shown)["nonce"] == "nonce-1"
    assert after[0]["kid"] != before[0]["kid"]
    assert (before[0] in after) is not forget


def test_it_listens_with_tls_where_there_is_an_authority() -> None:
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        with running_oidc_provider([POST], authority=authority) as provider:
            found = claims(provider, POST, code(provider, POST), authority.ca_file)

            assert provider.issuer.startswith("https://localhost:")
            assert found["sub"] == "ann-1"
