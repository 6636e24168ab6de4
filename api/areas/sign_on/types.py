"""The queries and bodies of browsers and clients on their way through an identity provider."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.errors import Invalid, NotFound
from custody.kit.shapes import TenantId

# Loose on purpose: what is wrong is said in a sentence, by identity.
Text = Annotated[str, Meta(max_length=2048)]
Token = Annotated[str, Meta(max_length=512)]


class TwoTenants(Invalid):
    """The provider's name and tenant_id name different tenants; send one of them."""


class TenantRequired(Invalid):
    """A tenant's provider needs its tenant: send tenant_id, or name it as <tenantId>~<id>."""


class StateMissing(Invalid):
    """The identity provider sent no state back; begin again."""


class ProviderUnknown(NotFound):
    """No such provider, or this deployment has no client there."""


class FlowCookies(msgspec.Struct, frozen=True, rename={"flow": "custody-flow"}):
    """The cookies that mark this browser for the few minutes of a sign-in."""

    flow: Annotated[str, described("Set by the route where the sign-in began.")] = ""

    def __repr__(self) -> str:
        return "FlowCookies()"


class SamlCookies(msgspec.Struct, frozen=True, rename={"flow": "custody-saml"}):
    """The same for SAML, whose answer a page of the identity provider sends."""

    flow: Annotated[str, described("Set by the route where the sign-in began.")] = ""

    def __repr__(self) -> str:
        return "SamlCookies()"


class SignOnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The address that the browser goes to afterwards, and the challenge of the client's verifier (RFC 7636)."""

    redirect_uri: Annotated[Text, described("Address for the code, from the list of the app client.")] = ""
    code_challenge: Annotated[Text, described("SHA-256 of the verifier in base64url, 43 characters.")] = ""
    code_challenge_method: Annotated[Text, described("`S256`.")] = ""
    state: Annotated[Text, described("Sent back as it is: at most 512 printable ASCII characters.")] = ""
    test: Annotated[
        Token,
        described("Instead of all that: the token of an administrator's try (`POST /tenants/{id}/sign-on/test`)."),
    ] = ""

    def __repr__(self) -> str:
        return "SignOnQuery()"


class OidcQuery(SignOnQuery, frozen=True, kw_only=True):
    """The same for a tenant's provider."""

    tenant_id: Annotated[TenantId | None, described("The tenant, where the provider's name leaves it out.")] = None

    def __repr__(self) -> str:
        return "OidcQuery()"


class OAuthQuery(OidcQuery, frozen=True, kw_only=True):
    """The same for a provider of the deployment, at which app clients let their users sign in."""

    client_id: Annotated[Text, described("The app client: its id, or `<tenantId>/<clientId>`.")] = ""
    camel_client_id: Annotated[Text, described("Another spelling of `client_id`.")] = msgspec.field(
        default="", name="clientId"
    )

    def __repr__(self) -> str:
        return "OAuthQuery()"


class CallbackQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The identity provider's answer by way of the browser."""

    state: Annotated[Text, described("The state with which the browser left.")] = ""
    code: Annotated[Text, described("The provider's code.")] = ""
    iss: Annotated[Text, described("The issuer that answers (RFC 9207).")] = ""
    error: Annotated[Text, described("Why the provider signed nobody in.")] = ""

    def __repr__(self) -> str:
        return "CallbackQuery()"


class ExchangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The code that came with the redirect, and the client's verifier."""

    code: Annotated[Token, described("The code; it works once, for a minute.")]
    redirect_uri: Annotated[Text, described("The address that the code was sent to.")]
    code_verifier: Annotated[Token, described("The PKCE verifier of the challenge, 43 to 128 characters.")]
    tenant_id: Annotated[TenantId | None, described("The tenant that was named where the sign-in began.")] = None

    def __repr__(self) -> str:
        return "ExchangeBody()"


class ProviderCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same for one provider of the deployment."""

    code: Annotated[Token, described("The code; it works once, for a minute.")]
    code_verifier: Annotated[Token, described("The PKCE verifier of the challenge, 43 to 128 characters.")]
    redirect_uri: Annotated[Text | None, described("The address that the code was sent to.")] = None
    tenant_id: Annotated[TenantId | None, described("The tenant that was named where the sign-in began.")] = None

    def __repr__(self) -> str:
        return "ProviderCodeBody()"
