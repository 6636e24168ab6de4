"""Signing in: no proof, because the message brings the evidence."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadEmailAddress
from custody.identity.siwe import SiweDomainMismatch, SiweMalformed, SiweNotValidNow
from custody.kit.described import Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import ClientId, TenantId
from custody.protocol.command import Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.sessions import SignedIn

BEGAN = ("session.began", "tenant.created", "membership.added")
Code = Annotated[str, Meta(min_length=1, max_length=64)]


class Nonce(msgspec.Struct, frozen=True, rename="camel"):
    """A nonce for one message."""

    nonce: Annotated[str, described("The nonce for the message; it works once.")]
    expires_at: Annotated[Instant, described("Time of expiry.")]

    def __repr__(self) -> str:
        return "Nonce()"


class EmailCode(msgspec.Struct, frozen=True):
    """A code to be mailed to the address; None where it asked too often."""

    email: str
    code: str | None
    expires_at: str

    def __repr__(self) -> str:
        return "EmailCode()"


@command("identity")
class NewNonce(Command[Nonce], frozen=True):
    """Make a nonce for a wallet's message; single use, five minutes."""


@command("identity", audit=BEGAN)
@refuses(refusals.Deactivated, refusals.NonceInvalid, refusals.NotAMember, refusals.RegistrationClosed)
@refuses(refusals.SignatureInvalid, refusals.SiweChainUnknown, SiweDomainMismatch, SiweMalformed, SiweNotValidNow)
@refuses(QuotaExceeded, refusals.SsoRequired, refusals.UnknownAppClient)
class SignInWithWallet(Command[SignedIn], frozen=True):
    """Sign in with an EIP-4361 message and its signature.

    `by_contract`: the wallet's contract agreed (EIP-1271), by the api's word. Fails with `contract_needed`, once for a
    nonce, where nothing is wrong but that the wallet did not sign itself. `client`: the message is for a page on an
    origin that this app client of `tenant` lists; the session stays in that tenant. `app`: an app client of
    `tenant` at whose page here the person signs in. At either they become a member where it registers people.
    """

    message: Annotated[str, Meta(max_length=8192)]
    signature: Annotated[str, Meta(max_length=16_384)]
    tenant: TenantId | None = None
    by_contract: bool = False
    client: ClientId | None = None
    app: ClientId | None = None

    def __repr__(self) -> str:
        return "SignInWithWallet()"


@command("identity")
@refuses(BadEmailAddress)
class NewEmailCode(Command[EmailCode], frozen=True):
    """Make a code for an address, which the api mails. The answer has none when the address asked too often."""

    email: Annotated[str, Meta(max_length=254)]


@command("identity", audit=BEGAN)
@refuses(BadEmailAddress, refusals.CodeInvalid, refusals.Deactivated, refusals.NotAMember, refusals.RegistrationClosed)
@refuses(QuotaExceeded, refusals.SsoRequired, refusals.TooManyAttempts, refusals.UnknownAppClient)
class SignInWithEmail(Command[SignedIn], frozen=True):
    """Sign in with the code that was mailed; `app` as with a wallet."""

    email: Annotated[str, Meta(max_length=254)]
    code: Code
    tenant: TenantId | None = None
    app: ClientId | None = None

    def __repr__(self) -> str:
        return "SignInWithEmail()"


@command("identity")
class NewSignInChallenge(Command[dict[str, Any]], frozen=True):
    """Make what a passkey signs to sign in; the answer is WebAuthn's JSON."""


@command("identity", audit=BEGAN)
@refuses(refusals.ChallengeInvalid, refusals.Deactivated, refusals.NotAMember, refusals.PasskeyCloned)
@refuses(refusals.PasskeyInvalid, refusals.PasskeyMalformed, refusals.PasskeyUnknown, refusals.RegistrationClosed)
@refuses(QuotaExceeded, refusals.SsoRequired, refusals.UnknownAppClient)
class SignInWithPasskey(Command[SignedIn], frozen=True):
    """Sign in with a passkey's assertion; `app` as with a wallet."""

    credential: dict[str, Any]
    tenant: TenantId | None = None
    app: ClientId | None = None

    def __repr__(self) -> str:
        return "SignInWithPasskey()"
