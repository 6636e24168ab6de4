"""The request that goes to an identity provider, and the metadata that its administrator loads."""

import zlib
from base64 import b64decode
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest
from lxml import etree
from saml2.mdstore import InMemoryMetaData

from api.areas.sign_on.saml_metadata import service_provider
from custody.identity.saml_request import acs_url, authn_request, entity_id, redirect_url
from tests.fixtures.each import each
from tests.outside.saml_answers import SAML, SAMLP, key

NOW = datetime(2026, 1, 1, 13, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=1)))
ID = "_" + "aA0_-" * 8 + "xyz"
PUBLIC = "https://custody.example"
TENANTS = ("acme", "A.b-c_d:1", "a" * 64)
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"


def request(destination: str = "https://idp.example/sso") -> str:
    return authn_request(
        ID, issuer=entity_id(PUBLIC, "acme"), acs=acs_url(PUBLIC, "acme"), destination=destination, now=NOW
    )


def test_a_request_says_who_asks_where_to_answer_and_by_which_binding() -> None:
    root = etree.fromstring(request("https://idp.example/sso?a=1&b='\"<"))

    assert root.tag == f"{{{SAMLP}}}AuthnRequest"
    assert dict(root.attrib) == {
        "ID": ID,
        "Version": "2.0",
        "IssueInstant": "2026-01-01T12:00:00Z",
        "Destination": "https://idp.example/sso?a=1&b='\"<",
        "ProtocolBinding": POST,
        "AssertionConsumerServiceURL": "https://custody.example/auth/saml/acme/acs",
    }
    assert [(child.tag, child.text) for child in root] == [
        (f"{{{SAML}}}Issuer", "https://custody.example/auth/saml/acme/metadata")
    ]


@each("bad", ["", ID[1:], ID + "x", ID[:-1], ID[:-1] + '"', ID[:-1] + "\n"])
def test_a_request_id_is_an_underscore_and_43_characters(bad: str) -> None:
    with pytest.raises(ValueError, match="request id"):
        authn_request(bad, issuer="a", acs="b", destination="c", now=NOW)


@each(
    ("destination", "kept"),
    [
        ("https://idp.example/sso", {}),
        ("https://idp.example/sso?", {}),
        ("https://idp.example/sso?idpid=C0&x=%2F", {"idpid": ["C0"], "x": ["/"]}),
        ("https://idp.example/sso?idpid=C0&", {"idpid": ["C0"]}),
    ],
)
def test_the_request_goes_deflated_behind_the_query_that_is_there(destination: str, kept: dict[str, list[str]]) -> None:
    url = redirect_url(destination, request(destination), "s" * 43)
    query = parse_qs(urlsplit(url).query, strict_parsing=True)

    packed = query.pop("SAMLRequest")[0]
    assert zlib.decompress(b64decode(packed, validate=True), -15).decode() == request(destination)
    assert query == kept | {"RelayState": ["s" * 43]}
    assert url.startswith(destination)
    assert url.isascii()
    assert not set(url) & set(' +"<>\n')


@each(("destination", "state"), [("https://a#b", "s"), ("https://a", ""), ("https://a", "s" * 81)])
def test_a_redirect_that_would_lose_something_is_not_made(destination: str, state: str) -> None:
    with pytest.raises(ValueError, match="RelayState"):
        redirect_url(destination, request(), state)


@each("tenant", TENANTS)
def test_another_librarys_reader_understands_the_metadata(tenant: str) -> None:
    entity, acs = entity_id(PUBLIC, tenant), acs_url(PUBLIC, tenant)
    metadata = InMemoryMetaData(None, "")
    metadata.parse(service_provider(entity, acs, None))

    (found,) = metadata.service(entity, "spsso_descriptor", "assertion_consumer_service", POST)
    assert list(metadata.keys()) == [entity]
    assert (found["location"], found["is_default"]) == (acs, "true")


def test_the_metadata_offers_no_logout_no_encryption_and_wants_signed_assertions() -> None:
    text = service_provider(entity_id(PUBLIC, "acme"), acs_url(PUBLIC, "acme"), None)

    assert 'WantAssertionsSigned="true"' in text
    assert not any(word in text for word in ("Logout", "KeyDescriptor", "Artifact", "Signature"))


def test_another_librarys_reader_finds_the_certificate_to_encrypt_for() -> None:
    entity = entity_id(PUBLIC, "acme")
    metadata = InMemoryMetaData(None, "")
    metadata.parse(service_provider(entity, acs_url(PUBLIC, "acme"), key().certificate))

    ((_, found),) = metadata.certs(entity, "spsso", "encryption")

    assert "".join(found.split()) == "".join(key().certificate.splitlines()[1:-1])
    assert metadata.certs(entity, "spsso", "signing") == []


def test_a_character_that_xml_needs_is_escaped() -> None:
    root = etree.fromstring(service_provider("https://a?b&c<'\"", "https://d?e&f", None).encode())

    assert root.get("entityID") == "https://a?b&c<'\""
