"""A tenant's own OIDC provider, by which its people sign in. Pure; what it leads to is asked elsewhere.

Every address in it decides where a person is sent, or what is believed of them, so each is one exact, public address;
an issuer that speaks for many organisations is refused, because its tokens would.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.outside_urls import NotOutside
from custody.kit.outside_urls import check as check_outside
from custody.kit.shapes import ProviderId, Url

MAX_PROVIDERS: Final = 10
MAX_LISTED: Final = 20
# Bytes of an issuer's keys.
MAX_KEY_SET: Final = 64 * 1024
# What is asked for in any case: an ID token, and the address in it.
SCOPES: Final = ("openid", "email")
SECRET_PREFIX: Final = "SERVICE_TENANT_OIDC_SECRET_"  # noqa: S105 - how names of variables begin
# Beside a secret's variable, another that names the only tenant it is for.
FOR: Final = "_FOR"
_MAX_VARIABLE: Final = 128
_VARIABLE = re.compile(r"[A-Z0-9_]+\Z")
_NOT_IN_KEY = re.compile(r"[^A-Z0-9_]")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}\Z")
# First part of the path of an issuer that answers for every organisation; what is meant for a reader to replace.
_FOR_MANY: Final = frozenset({"common", "organizations", "consumers"})
_PLACEHOLDER = re.compile(r"[{}]|%7[bd]", re.IGNORECASE)

ClientAuthentication = Literal["basic", "post"]
Text = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+\Z")]
Texts = Annotated[tuple[Text, ...], Meta(max_length=MAX_LISTED)]
Issuer = Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[\x21-\x7e]+\Z")]
# What it may be exactly is told by code `invalid_oidc_provider`.
Variable = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+\Z")]


class InvalidOidcProvider(Invalid):
    """The OIDC provider is not valid; the sentence names the field, and what it must be."""


class OidcProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A provider with everything that signing in needs, as it is stored and returned."""

    id: Annotated[ProviderId, described("The provider's id, unique in the tenant.")]
    enabled: Annotated[bool, described("True if people may sign in with it.")]
    issuer: Annotated[Issuer, described("The issuer, exactly as its ID tokens say it.", format="uri")]
    audience: Annotated[Texts, described("Audiences of ID tokens that are accepted.")]
    jwks_uri: Annotated[Url, described("Address of the issuer's keys.", format="uri")]
    client_id: Annotated[Text, described("The client that this service is at the provider.")]
    client_secret_env: Annotated[
        Variable | None, described("The operator's variable with the client's secret; null: a public client.")
    ]
    authorization_url: Annotated[Url, described("Sign-in page of the provider.", format="uri")]
    token_url: Annotated[Url, described("Token endpoint of the provider.", format="uri")]
    scopes: Annotated[Texts, described("Scopes; `openid` and `email` always.")]
    allow_jit_provisioning: Annotated[bool, described("True to make an unknown person a member, as viewer.")]
    client_authentication: Annotated[
        ClientAuthentication, described("Way to send the client's secret: HTTP Basic, or in the form.")
    ]
    iss_in_response: Annotated[
        bool, described("True if the provider names itself in its answer; one without `iss` is then refused.")
    ]
    userinfo_url: Annotated[
        Url | None,
        described(
            "Userinfo endpoint, asked where the ID token has no `email_verified`; null: it is never asked.",
            format="uri",
        ),
    ] = None


class ProviderProblem(Exception):
    """A problem with one field of a provider."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field
        self.sentence = sentence

    def of(self, index: int) -> InvalidOidcProvider:
        """The refusal, for one provider of several."""
        place = f"providers[{index}].{self.field}"
        return InvalidOidcProvider(f"{place}: {self.sentence}", fields=[place])


def check_all(providers: Sequence[OidcProvider], tenant: str, public_url: str) -> list[OidcProvider]:
    """The providers as they may be stored, or InvalidOidcProvider for the first field that is wrong."""
    if len(providers) > MAX_PROVIDERS:
        raise InvalidOidcProvider(f"providers: at most {MAX_PROVIDERS}.", fields=["providers"])
    seen: set[str] = set()
    checked = []
    for index, provider in enumerate(providers):
        try:
            if provider.id in seen:
                raise ProviderProblem("id", "It is given twice.")
            checked.append(check(provider, tenant, public_url))
        except ProviderProblem as problem:
            raise problem.of(index) from None
        seen.add(provider.id)
    return checked


def check(provider: OidcProvider, tenant: str, public_url: str) -> OidcProvider:
    """The provider as it may be stored; ProviderProblem for the first field that is wrong."""
    check_issuer(provider.issuer, public_url)
    for field, url in (
        ("jwksUri", provider.jwks_uri),
        ("authorizationUrl", provider.authorization_url),
        ("tokenUrl", provider.token_url),
    ):
        check_address(field, url, public_url)
    if provider.userinfo_url is not None:
        check_address("userinfoUrl", provider.userinfo_url, public_url)
    if not provider.audience:
        raise ProviderProblem("audience", "It is empty; leave it out to accept the clientId.")
    if provider.client_secret_env is not None:
        check_variable(provider.client_secret_env, tenant)
    for scope in provider.scopes:
        if not _SCOPE.match(scope):
            raise ProviderProblem("scopes", "A scope has a character that no scope may have, such as a quote.")
    return msgspec.structs.replace(provider, scopes=with_ours(provider.scopes))


def check_issuer(issuer: str, public_url: str) -> None:
    """ProviderProblem unless it can be the issuer of one organisation."""
    if _PLACEHOLDER.search(issuer):
        raise ProviderProblem("issuer", "It has a placeholder in braces; write your own directory's id there.")
    check_address("issuer", issuer, public_url)
    if "?" in issuer:
        raise ProviderProblem("issuer", "It has a query (?); an issuer has none.")
    if issuer.split("/")[3:4] and issuer.split("/")[3].lower() in _FOR_MANY:
        raise ProviderProblem(
            "issuer", "It speaks for every organisation; write your own directory's id in place of that word."
        )


def check_address(field: str, url: str, public_url: str) -> None:
    """ProviderProblem unless people or this service may be sent there."""
    try:
        check_outside(url, public_url=public_url)
    except NotOutside as problem:
        raise ProviderProblem(field, problem.sentence) from None


def check_variable(name: str, tenant: str) -> None:
    """ProviderProblem unless this tenant may name the variable."""
    prefix = variable_prefix(tenant)
    if not name.startswith(prefix) or name == prefix:
        raise ProviderProblem("clientSecretEnv", f"It must begin with {prefix} and go on.")
    if len(name) > _MAX_VARIABLE or not _VARIABLE.match(name):
        raise ProviderProblem(
            "clientSecretEnv", f"It may have at most {_MAX_VARIABLE} capitals, digits and underscores."
        )
    if name.endswith(FOR):
        raise ProviderProblem("clientSecretEnv", f"It must not end in {FOR}: that names the tenant of a secret.")


def variable_prefix(tenant: str) -> str:
    """Name the prefix of the variables of a tenant's secrets."""
    return f"{SECRET_PREFIX}{_NOT_IN_KEY.sub('_', tenant.upper())}_"


def keys_admitting(name: str) -> list[str]:
    """Every key of a tenant whose prefix admits the variable: `A_B_C` is admitted by `A` and by `A_B`."""
    rest = name.removeprefix(SECRET_PREFIX)
    return [rest[:end] for end in range(1, len(rest)) if rest[end] == "_"]


def with_ours(scopes: Sequence[str]) -> tuple[str, ...]:
    """The scopes with those that are always asked for, each once."""
    return tuple(dict.fromkeys((*SCOPES, *scopes)))


def callback_url(public_url: str, tenant: str, provider: str) -> str:
    """Build the address that the provider sends people back to: one for each tenant's provider alone."""
    return f"{public_url}/auth/oidc/{tenant}~{provider}/callback"
