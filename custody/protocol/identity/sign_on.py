"""Signing in at an identity provider: a browser leaves with a state, comes back, and its client gets a code.

The api talks to providers and is not believed: it hands on what they signed, byte for byte, and identity judges it.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.identity.domains import SignOnMethod
from custody.identity.roles import ANYBODY
from custody.kit.described import Id, Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import ClientId, ProviderId, TenantId
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.refusals import AdministrationMoving

SignOnKind = Literal["oauth", "oidc", "saml"]
# Random texts that identity or the api makes: 256 bits in base64url.
Random = Annotated[str, Meta(min_length=43, max_length=43, pattern=r"^[A-Za-z0-9_-]+\Z")]
# What comes from a browser is looked up by its hash; anything that is no such text is unknown.
Shown = Annotated[str, Meta(max_length=512)]
# Why there is nothing to judge: what became of the question at the provider.
Problem = Literal[
    "token_endpoint_failed", "token_endpoint_refused", "profile_failed", "userinfo_failed", "keys_unavailable"
]
IDTOKEN_MOST = 16 * 1024
USERINFO_MOST = 16 * 1024
# A form of a browser: 64 KiB of XML in base64, with line ends.
SAML_MOST = 96 * 1024
FormerDays = Annotated[
    int,
    Meta(ge=0, le=90),
    described("Days for which the keys before it still open; with 0 they end at once.", unit="d"),
]
BEGAN = ("session.began", "tenant.created", "membership.added", "membership.changed", "sso.account_linked")


class SignInBegun(msgspec.Struct, frozen=True):
    """The address that the browser goes to: the identity provider's."""

    url: str

    def __repr__(self) -> str:
        return "SignInBegun()"


class Opened(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The means to exchange the provider's code, once.

    `secret_env` names the variable of a tenant's client secret; None: a public client, or one of the deployment's own
    providers. `profile_url`: there is no ID token, the profile is asked for. `userinfo_url` is asked where the ID token
    says nothing of `email_verified`.
    """

    token_url: str
    client_id: str
    callback: str
    verifier: str
    secret_env: str | None = None
    basic: bool = False
    profile_url: str | None = None
    userinfo_url: str | None = None

    def __repr__(self) -> str:
        return "Opened()"


class SentBack(msgspec.Struct, frozen=True, tag=True):
    """The way back of the browser: to the client, with a code or with the error."""

    location: str

    def __repr__(self) -> str:
        return "SentBack()"


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that was looked at. None: not reached."""

    name: Annotated[str, described("The check.")]
    title: Annotated[str, described("Subject of the check, for people.")]
    passed: Annotated[bool | None, described("True if it passed; null: it was not reached.")]
    expected: Annotated[str | None, described("Expected value, if it failed.")] = None
    found: Annotated[str | None, described("Value found, if it failed.")] = None


class Tried(msgspec.Struct, frozen=True, tag=True):
    """The result of an administrator's test: no session, but every check, and what arrived."""

    provider: str
    ok: bool
    problem: str | None
    checks: list[Check]
    arrived: dict[str, Any]
    role: str | None

    def __repr__(self) -> str:
        return f"Tried({self.provider})"


class SavedSaml(msgspec.Struct, frozen=True):
    """The configuration as it is stored."""

    document: str
    updated_at: str


class DeletedSaml(msgspec.Struct, frozen=True):
    """The tenant that has no SAML configuration any more."""

    deleted: Annotated[str, described("The tenant.")]


class SamlKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A key that the identity provider may encrypt assertions for; its private half is shown to nobody."""

    id: Annotated[Id, described("The key's id.")]
    certificate: Annotated[str, described("Its certificate as PEM, for the identity provider.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    opens_until: Annotated[Instant | None, described("End of its overlap; null for the key of the metadata.")]


class Exchanged(msgspec.Struct, frozen=True):
    """The session; `tell` is the address of a person who has one more way to sign in since."""

    session: SignedIn
    tell: str | None = None

    def __repr__(self) -> str:
        return "Exchanged()"


@command("identity")
@refuses(refusals.BadClientState, refusals.BadCodeChallenge, refusals.BadRedirectUri, refusals.ProviderAbsent)
@refuses(refusals.SignInStateInvalid)
class BeginSignIn(Command[SignInBegun], frozen=True, kw_only=True):
    """Make the state of a browser that is sent to a provider, and the address it goes to.

    `client`: an app client of `tenant`, whose list the redirect URL must be on; without one that of the tenant's
    default client counts. `test`: a token of TestSignOn, instead of a redirect URL and a challenge.
    """

    kind: SignOnKind
    provider: ProviderId
    browser: Random
    tenant: TenantId | None = None
    client: Annotated[str, Meta(max_length=129)] | None = None
    redirect_uri: Annotated[str, Meta(max_length=2048)] = ""
    code_challenge: Annotated[str, Meta(max_length=128)] = ""
    state: Annotated[str, Meta(max_length=1024)] = ""
    test: Shown | None = None

    def __repr__(self) -> str:
        return f"BeginSignIn({self.provider})"


class SignOnTest(msgspec.Struct, frozen=True, rename="camel"):
    """The address for testing a provider."""

    url: Annotated[str, described("Open it in a browser; it works once. It ends on a page with every check.")]
    expires_at: Annotated[Instant, described("Until when it works.")]

    def __repr__(self) -> str:
        return "SignOnTest()"


class SignInAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An app client whose people sign in at our own page, and by which of the ways."""

    name: str
    registers: bool
    oauth_off: list[str]
    methods: list[SignOnMethod]


@command("identity")
@refuses(refusals.BadRedirectUri, refusals.UnknownAppClient)
class LookAtSignIn(Command[SignInAsked], frozen=True, kw_only=True):
    """Look at the app client for which a person is to sign in, before anybody is asked for anything."""

    tenant: TenantId
    client: ClientId
    redirect_uri: Annotated[str, Meta(max_length=2048)]


class CodeGranted(msgspec.Struct, frozen=True):
    """The address of the app client, with a code for it."""

    location: Annotated[str, described("The redirect URL with `code`, `state` and `iss`; send the browser there.")]

    def __repr__(self) -> str:
        return "CodeGranted()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("session.code_made",))
@refuses(refusals.BadClientState, refusals.BadCodeChallenge, refusals.BadRedirectUri, refusals.UnknownAppClient)
class GrantCode(Command[CodeGranted], frozen=True, kw_only=True):
    """Make a code with which an app client of the session's tenant begins a session of the same person there.

    The redirect URL must be on the client's list, and is matched again when the code is exchanged.
    """

    client: ClientId
    redirect_uri: Annotated[str, Meta(max_length=2048)]
    code_challenge: Annotated[str, Meta(max_length=128)]
    state: Annotated[str, Meta(max_length=1024)] = ""

    def __repr__(self) -> str:
        return f"GrantCode({self.client})"


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.test_begun",))
@refuses(AdministrationMoving, refusals.ProviderAbsent)
class TestSignOn(Command[SignOnTest], frozen=True):
    """Make an address at which an administrator tries one of the tenant's providers."""

    provider: ProviderId


@command("identity", audit=("sso.refused", "sso.tested"))
@refuses(refusals.SignInStateInvalid)
class OpenSignIn(Command[Opened | SentBack | Tried], frozen=True, kw_only=True):
    """Use up the state with which a browser came back; `error`: the provider's own refusal, which uses it up too."""

    kind: SignOnKind
    provider: ProviderId
    tenant: TenantId | None
    state: Shown
    browser: Shown
    issuer: Annotated[str, Meta(max_length=512)] | None = None
    error: Annotated[str, Meta(max_length=200)] | None = None

    def __repr__(self) -> str:
        return f"OpenSignIn({self.provider})"


@command("identity", audit=("sso.refused", "sso.tested"))
class FinishOAuth(Command[SentBack | Tried], frozen=True, kw_only=True):
    """Judge what the provider said of a person, and make the code for the client.

    `profile`: the person's id at a provider without ID tokens, by the api's word. `userinfo`: what the provider's
    userinfo endpoint says, by the api's word, where an administrator lets that be asked. `problem`: there is nothing to
    judge, because the provider did not answer.
    """

    state: Shown
    id_token: Annotated[str, Meta(max_length=IDTOKEN_MOST)] | None = None
    profile: Annotated[str, Meta(max_length=32)] | None = None
    userinfo: Annotated[str, Meta(max_length=USERINFO_MOST)] | None = None
    problem: Problem | None = None

    def __repr__(self) -> str:
        return "FinishOAuth()"


@command("identity", audit=("sso.refused", "sso.tested"))
@refuses(refusals.SamlUnsolicited, refusals.SignInStateInvalid)
class FinishSaml(Command[SentBack | Tried], frozen=True, kw_only=True):
    """Judge the answer of a tenant's SAML provider, which a browser brought, and make the code for the client."""

    tenant: TenantId
    relay_state: Shown
    browser: Shown
    response: Annotated[str, Meta(max_length=SAML_MOST)]

    def __repr__(self) -> str:
        return f"FinishSaml({self.tenant})"


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.saml_changed", "session.ended"))
@refuses(AdministrationMoving)
class PutSaml(Command[SavedSaml], frozen=True):
    """Replace the tenant's SAML configuration."""

    config: dict[str, Any]


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.saml_deleted",))
@refuses(AdministrationMoving, refusals.SamlConfigAbsent)
class DeleteSaml(Command[DeletedSaml], frozen=True):
    """Forget the tenant's SAML configuration."""


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.saml_key_made",))
@refuses(AdministrationMoving, refusals.TooManySamlKeys)
class MakeSamlKey(Command[SamlKey], frozen=True):
    """Make the key that assertions are encrypted for from now on; those before it open for some days more."""

    former_days: FormerDays


@command("identity", audit=BEGAN)
@refuses(refusals.AccountUnknown, refusals.CodeRedirectMismatch, refusals.CodeTenantMismatch)
@refuses(refusals.CodeVerifierMismatch, refusals.Deactivated, refusals.ExchangeCodeInvalid, refusals.MembershipRemoved)
@refuses(refusals.BadRedirectUri, refusals.NotAMember, QuotaExceeded, refusals.RegistrationClosed)
@refuses(refusals.SsoRequired, refusals.UnknownAppClient)
class ExchangeCode(Command[Exchanged], frozen=True, kw_only=True):
    """Begin the session of the person who was proven. The first try uses the code up, right or wrong."""

    code: Shown
    code_verifier: Shown
    # None: not compared, where the provider's own route takes the code.
    redirect_uri: Annotated[str, Meta(max_length=2048)] | None = None
    tenant: TenantId | None = None
    provider: ProviderId | None = None

    def __repr__(self) -> str:
        return "ExchangeCode()"
