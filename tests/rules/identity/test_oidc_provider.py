"""A tenant's OIDC provider: what may be stored, and the sentence for what may not."""

from typing import Any

import msgspec
import pytest

from custody.identity.oidc_provider import (
    InvalidOidcProvider,
    OidcProvider,
    check_all,
    keys_admitting,
    variable_prefix,
)
from tests.fixtures.each import each

PUBLIC = "https://custody.example.com"
LOOPBACK = "http://localhost:3200"
GOOD = OidcProvider(
    id="okta",
    enabled=True,
    issuer="https://idp.example.com",
    audience=("client",),
    jwks_uri="https://idp.example.com/keys",
    client_id="client",
    client_secret_env=None,
    authorization_url="https://idp.example.com/authorize",
    token_url="https://idp.example.com/token",
    scopes=("openid", "email"),
    allow_jit_provisioning=False,
    client_authentication="basic",
    iss_in_response=False,
)
_ADDRESSES = {
    "issuer": "issuer",
    "jwks_uri": "jwksUri",
    "authorization_url": "authorizationUrl",
    "token_url": "tokenUrl",
}


def provider(**changed: Any) -> OidcProvider:
    return msgspec.structs.replace(GOOD, **changed)


def refusal_of(*providers: OidcProvider, tenant: str = "acme", public_url: str = PUBLIC) -> InvalidOidcProvider:
    with pytest.raises(InvalidOidcProvider) as refused:
        check_all(providers, tenant, public_url)
    return refused.value


@each(
    "changed",
    [
        {},
        {"issuer": "https://idp.example.com/"},
        {"issuer": "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"},
        {"issuer": "https://kc.example.com/realms/common"},
        {"issuer": "https://idp.example.com:8443/a"},
        {"client_secret_env": "SERVICE_TENANT_OIDC_SECRET_ACME_OKTA"},
        {"authorization_url": "https://idp.example.com/authorize?tenant=a"},
    ],
)
def test_a_good_provider_is_kept_as_it_is(changed: dict[str, Any]) -> None:
    assert check_all([provider(**changed)], "acme", PUBLIC) == [provider(**changed)]


def test_scopes_get_what_is_always_asked_for() -> None:
    [kept] = check_all([provider(scopes=("profile", "email", "profile"))], "acme", PUBLIC)

    assert kept.scopes == ("openid", "email", "profile")


@each("field", _ADDRESSES)
@each(
    "url",
    [
        "http://idp.example.com/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::1]/",
        "https://metadata.google.internal/",
        "https://idp/",
        "https://user:hunter2@idp.example.com/",
        "https://idp.example.com/#a",
        "https://2130706433/",
        "https://idp.example.com\\@evil.com/",
        "https://IDP.example.com/",
        "",
    ],
)
def test_an_address_that_is_not_public_is_refused_by_its_field(field: str, url: str) -> None:
    refused = refusal_of(GOOD, provider(id="b", **{field: url}))

    assert refused.context["fields"] == [f"providers[1].{_ADDRESSES[field]}"]
    assert refused.message.startswith(f"providers[1].{_ADDRESSES[field]}: ")
    assert "hunter2" not in refused.message


def test_loopback_is_for_a_deployment_that_is_there_too() -> None:
    local = provider(issuer="http://localhost:9", jwks_uri="http://127.0.0.1:9/keys")

    assert check_all([local], "acme", LOOPBACK) == [local]
    assert refusal_of(local).context["fields"] == ["providers[0].issuer"]


@each(
    ("issuer", "words"),
    [
        ("https://login.microsoftonline.com/common/v2.0", "every organisation"),
        ("https://login.microsoftonline.com/Organizations/v2.0", "every organisation"),
        ("https://login.microsoftonline.com/consumers", "every organisation"),
        ("https://login.microsoftonline.com/{tenantid}/v2.0", "placeholder"),
        ("https://login.microsoftonline.com/%7Btenantid%7D/v2.0", "placeholder"),
        ("https://idp.example.com?a=b", "query"),
    ],
)
def test_an_issuer_that_is_nobodys_own_is_refused(issuer: str, words: str) -> None:
    assert words in refusal_of(provider(issuer=issuer)).message


@each(
    "name",
    [
        "SERVICE_MASTER_KEY_FILE",
        "SERVICE_TENANT_OIDC_SECRET_ACME_",
        "SERVICE_TENANT_OIDC_SECRET_ACME",
        "SERVICE_TENANT_OIDC_SECRET_OTHER_OKTA",
        "SERVICE_TENANT_OIDC_SECRET_ACMECORP_OKTA",
        "service_tenant_oidc_secret_acme_okta",
        "SERVICE_TENANT_OIDC_SECRET_ACME_okta",
        "SERVICE_TENANT_OIDC_SECRET_ACME_A-B",
        "SERVICE_TENANT_OIDC_SECRET_ACME_A\n",
        "SERVICE_TENANT_OIDC_SECRET_ACME_A_FOR",
        "SERVICE_TENANT_OIDC_SECRET_ACME_" + "A" * 128,
        "PATH",
        "",
    ],
)
def test_a_variable_that_is_not_the_tenants_is_refused(name: str) -> None:
    assert refusal_of(provider(client_secret_env=name)).context["fields"] == ["providers[0].clientSecretEnv"]


@each(
    ("tenant", "prefix"),
    [
        ("acme", "SERVICE_TENANT_OIDC_SECRET_ACME_"),
        ("a-b", "SERVICE_TENANT_OIDC_SECRET_A_B_"),
        ("a.b", "SERVICE_TENANT_OIDC_SECRET_A_B_"),
        ("A_B", "SERVICE_TENANT_OIDC_SECRET_A_B_"),
        ("x:1", "SERVICE_TENANT_OIDC_SECRET_X_1_"),
    ],
)
def test_a_tenants_prefix_is_its_id_in_capitals(tenant: str, prefix: str) -> None:
    assert variable_prefix(tenant) == prefix


def test_every_key_that_admits_a_variable_is_found() -> None:
    assert keys_admitting("SERVICE_TENANT_OIDC_SECRET_ACME_CORP_OKTA") == ["ACME", "ACME_CORP"]
    assert keys_admitting("SERVICE_TENANT_OIDC_SECRET_A__B_") == ["A", "A_", "A__B"]


def test_ids_are_unique_and_at_most_ten() -> None:
    assert refusal_of(GOOD, GOOD).context["fields"] == ["providers[1].id"]
    assert refusal_of(*(provider(id=f"p{number}") for number in range(11))).context["fields"] == ["providers"]


@each("scope", ["a b", 'a"b', "a\\b", "é", ""])
def test_a_scope_with_other_characters_is_refused(scope: str) -> None:
    assert refusal_of(provider(scopes=("openid", scope))).context["fields"] == ["providers[0].scopes"]


def test_an_empty_audience_is_refused() -> None:
    assert refusal_of(provider(audience=())).context["fields"] == ["providers[0].audience"]
