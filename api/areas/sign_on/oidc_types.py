"""Tenants' OIDC providers as callers send and see them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.oidc_provider import (
    MAX_PROVIDERS,
    ClientAuthentication,
    Issuer,
    OidcProvider,
    Text,
    Texts,
    Variable,
)
from custody.kit.described import Instant, described
from custody.kit.shapes import ProviderId, Url
from custody.sign_on.try_types import LastTest


class OidcProviderBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A provider as it is sent; what is left out is taken from the issuer's discovery document."""

    id: Annotated[ProviderId, described("The provider's id, unique in the tenant.")]
    issuer: Annotated[Issuer, described("The issuer, exactly as its ID tokens say it.", format="uri")]
    client_id: Annotated[Text, described("The client that this service is at the provider.")]
    client_secret_env: Annotated[
        Variable | None,
        described("The operator's variable with the client's secret, see `secretVariablePrefix`; null: public client."),
    ] = None
    enabled: Annotated[bool, described("True if people may sign in with it.")] = True
    audience: Annotated[Texts | None, described("Audiences of ID tokens that are accepted; null: the `clientId`.")] = (
        None
    )
    jwks_uri: Annotated[Url | None, described("Address of the issuer's keys; null: discovered.", format="uri")] = None
    authorization_url: Annotated[
        Url | None, described("Sign-in page of the provider; null: discovered.", format="uri")
    ] = None
    token_url: Annotated[Url | None, described("Token endpoint of the provider; null: discovered.", format="uri")] = (
        None
    )
    userinfo_url: Annotated[
        Url | None,
        described(
            "Userinfo endpoint, to ask where the ID token has no `email_verified`; the api is then believed about the "
            "address. Null: it is never asked.",
            format="uri",
        ),
    ] = None
    scopes: Annotated[Texts, described("Scopes besides `openid` and `email`.")] = ()
    allow_jit_provisioning: Annotated[
        bool, described("True to make an unknown person of a verified domain a member, as viewer.")
    ] = False
    client_authentication: Annotated[
        ClientAuthentication | None, described("Way to send the client's secret; null: discovered, else `basic`.")
    ] = None
    iss_in_response: Annotated[
        bool | None, described("True if the provider names itself in its answer (RFC 9207); null: discovered.")
    ] = None


class OidcProvidersBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All providers of the tenant; those that are not named are deleted."""

    providers: Annotated[
        tuple[OidcProviderBody, ...], Meta(max_length=MAX_PROVIDERS), described("The providers, in their order.")
    ]


class ShownOidcProvider(OidcProvider, frozen=True, rename="camel", kw_only=True):
    """A provider, what to copy to it, and the state of its keys."""

    callback_url: Annotated[str, described("The redirect URI to register at the provider.", format="uri")]
    client_secret_set: Annotated[
        bool | None, described("True if the variable of `clientSecretEnv` is set; null: none is named.")
    ]
    keys_fetched_at: Annotated[Instant | None, described("Time of the last fetch of the issuer's keys.")]
    keys_problem: Annotated[
        str | None,
        described("Why the last fetch brought no keys, such as `timeout` or `set_empty`; earlier keys still count."),
    ]
    last_test: Annotated[LastTest | None, described("Result of the last `POST /tenants/{id}/sign-on/test`.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    updated_at: Annotated[Instant, described("Time of the last change.")]


class OidcProviders(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant's OIDC providers, and what to know before the first is saved."""

    providers: Annotated[list[ShownOidcProvider], described("The providers, in their order.")]
    callback_url_template: Annotated[
        str, described("The redirect URI of any provider of this tenant, with `{id}` in place of its id.")
    ]
    secret_variable_prefix: Annotated[str, described("Required prefix of `clientSecretEnv` here.")]
