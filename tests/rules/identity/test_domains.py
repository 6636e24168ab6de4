"""E-mail domains that a tenant may claim, and the record that proves one."""

import pytest

from custody.identity import domains
from custody.identity.addresses import normalised_email
from custody.identity.domains import BadDomain, SignOnMethod
from tests.fixtures.each import each

LONGEST = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 44, "com"])
BAD = [
    "",
    "x",
    "localhost",
    "com",
    "somebody@example.com",
    "192.0.2.7",
    "[2001:db8::1]",
    "2001:db8::1",
    "a..b",
    "..",
    ".example.com",
    "*.example.com",
    "example.com.",
    "bücher.example",
    "_x.com",
    "_service-sso.example.com",
    "-x.com",
    "x-.com",
    "x.c",
    "x.123",
    "example.com\n",
    " example.com",
    "exam ple.com",
    "https://example.com",
    "example.com:443",
    "example.com/",
    "a" * 64 + ".com",
    "d" + LONGEST,
    "x." * 126 + "com",
    "co.uk",
    "CO.UK",
    "github.io",
    "gmail.com",
]


@each("text", BAD)
def test_a_text_that_is_no_domain_of_somebody_is_refused(text: str) -> None:
    with pytest.raises(BadDomain) as refused:
        domains.check(text)

    assert refused.value.context["fields"] == ["domain"]


@each(
    ("text", "domain"),
    [
        ("example.com", "example.com"),
        ("Example.COM", "example.com"),
        ("mail.example.co.uk", "mail.example.co.uk"),
        ("example.github.io", "example.github.io"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("x.xn--p1ai", "x.xn--p1ai"),
        ("1and1.com", "1and1.com"),
        (LONGEST, LONGEST),
    ],
)
def test_a_domain_is_written_as_addresses_have_it(text: str, domain: str) -> None:
    assert domains.check(text) == domain
    assert domains.domain_of(normalised_email(f"a@{text}")) == domain
    assert len(domains.record_name(domain)) <= 253


def test_the_record_stands_below_the_domain() -> None:
    assert domains.record_name("example.com") == "_service-sso.example.com"


@each(
    ("required", "verified", "provided", "why"),
    [
        (True, True, True, None),
        (False, True, True, "not_required"),
        (True, False, True, "domain_pending"),
        (True, True, False, "no_provider"),
        (False, False, False, "not_required"),
    ],
)
def test_why_sign_on_is_not_demanded(required: bool, verified: bool, provided: bool, why: str | None) -> None:
    assert domains.why_not_counting(required=required, verified=verified, provided=provided) == why


def test_methods_name_where_to_begin() -> None:
    assert domains.methods("https://c.example", "t:1", saml=True, oidc=["okta"]) == [
        SignOnMethod("saml", "https://c.example/auth/saml/t:1/login"),
        SignOnMethod("oidc", "https://c.example/auth/oidc/t:1~okta/authorize", "okta"),
    ]
    assert domains.methods("https://c.example", "t", saml=False, oidc=[]) == []
