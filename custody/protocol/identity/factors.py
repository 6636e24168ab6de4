"""Second factors; a person who has one needs it to change them, which each handler judges."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadPhoneNumber
from custody.identity.roles import ADMINS, ANYBODY
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Digest, DisplayName, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.refusals import MfaRequired, SessionBound

Code = Annotated[str, Meta(min_length=1, max_length=64)]


class TotpEnrolment(msgspec.Struct, frozen=True, rename="camel"):
    """A seed for an authenticator app, returned only here; it takes effect once its first code is verified."""

    secret: Annotated[str, described("The seed in base32.")]
    otpauth_uri: Annotated[str, described("The same as an address to show as a QR code.")]
    expires_at: Annotated[Instant, described("Until when its first code must be verified.")]

    def __repr__(self) -> str:
        return "TotpEnrolment()"


class Confirmed(SignedIn, frozen=True, rename="camel", omit_defaults=True):
    """A session with fresh MFA; with new recovery codes if there were none."""

    recovery_codes: Annotated[
        list[str] | None, described("Ten recovery codes, if there were none; each works once.")
    ] = None

    def __repr__(self) -> str:
        return "Confirmed()"


class RecoveryCodes(msgspec.Struct, frozen=True, rename="camel"):
    """Ten recovery codes, returned only here; each works once."""

    recovery_codes: Annotated[list[str], described("The codes; each works once.")]

    def __repr__(self) -> str:
        return "RecoveryCodes()"


class RemovedFactor(msgspec.Struct, frozen=True):
    """The removed factor: its kind, or a passkey's id."""

    deleted: Annotated[str, described("`totp`, `sms`, or the id of a passkey.")]


class NewPasskey(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The registered passkey; with new recovery codes if there were none."""

    id: Annotated[Id, described("The passkey's id.")]
    name: Annotated[str, described("Its name.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    transports: Annotated[list[str], described("Transports of the authenticator, such as `internal` or `usb`.")]
    recovery_codes: Annotated[
        list[str] | None, described("Ten recovery codes, if there were none; each works once.")
    ] = None

    def __repr__(self) -> str:
        return "NewPasskey()"


class PhoneCode(msgspec.Struct, frozen=True):
    """A code to be sent to the number."""

    phone: str
    code: str
    expires_at: str

    def __repr__(self) -> str:
        return "PhoneCode()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True)
@refuses(refusals.Deactivated, refusals.FactorExists, MfaRequired, SessionBound)
class EnrolTotp(Command[TotpEnrolment], frozen=True):
    """Make a new authenticator seed; it counts once a code of it was shown."""


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("factor.enrolled", "session.stepped_up"))
@refuses(refusals.CodeInvalid, refusals.Deactivated, refusals.EnrolmentAbsent, MfaRequired, refusals.NotAMember)
@refuses(SessionBound, refusals.SsoRequired, refusals.TooManyAttempts)
class ConfirmTotp(Command[Confirmed], frozen=True):
    """Show the first code of the new seed. The answer is a session, with recovery codes if there were none."""

    code: Code

    def __repr__(self) -> str:
        return "ConfirmTotp()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("factor.removed",))
@refuses(refusals.Deactivated, refusals.FactorAbsent, MfaRequired, SessionBound)
class RemoveTotp(Command[RemovedFactor], frozen=True):
    """Remove the authenticator."""


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("factor.codes_made",))
@refuses(refusals.Deactivated, MfaRequired, refusals.NoFactor, SessionBound)
class NewRecoveryCodes(Command[RecoveryCodes], frozen=True):
    """Make ten new recovery codes; the older ones are gone."""


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True)
@refuses(BadPhoneNumber, refusals.Deactivated, MfaRequired, SessionBound, refusals.TooManyAttempts)
class EnrolSms(Command[PhoneCode], frozen=True):
    """Begin with a phone number; the answer has the code that the api sends to it."""

    phone: Annotated[str, Meta(max_length=16)]


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("factor.enrolled", "session.stepped_up"))
@refuses(refusals.CodeInvalid, refusals.Deactivated, refusals.EnrolmentAbsent, MfaRequired, refusals.NotAMember)
@refuses(SessionBound, refusals.SsoRequired, refusals.TooManyAttempts)
class ConfirmSms(Command[Confirmed], frozen=True):
    """Show the code that was sent to the new number; the answer is a session."""

    code: Code

    def __repr__(self) -> str:
        return "ConfirmSms()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, pages=True)
@refuses(refusals.FactorAbsent, refusals.TooManyAttempts)
class NewSmsCode(Command[PhoneCode], frozen=True):
    """Make a code for the enrolled number; the answer has it, and the number, for the api to send."""


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True)
class NewPasskeyChallenge(Command[dict[str, Any]], frozen=True):
    """Make what a passkey signs to be registered, or to step up; the answer is WebAuthn's JSON."""

    purpose: Literal["register", "step_up"]


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("passkey.added",))
@refuses(refusals.ChallengeInvalid, refusals.Deactivated, MfaRequired, refusals.PasskeyInvalid)
@refuses(refusals.PasskeyMalformed, refusals.PasskeyRefused, refusals.PasskeyTaken, SessionBound)
@refuses(refusals.TooManyPasskeys)
class RegisterPasskey(Command[NewPasskey], frozen=True):
    """Register a new passkey with its attestation."""

    credential: dict[str, Any]
    name: DisplayName | None = None

    def __repr__(self) -> str:
        return "RegisterPasskey()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("passkey.removed",))
@refuses(refusals.Deactivated, refusals.LastLoginMethod, MfaRequired, refusals.PasskeyAbsent, SessionBound)
class RemovePasskey(Command[RemovedFactor], frozen=True):
    """Remove one of the person's own passkeys."""

    passkey: Uuid


class ItemToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token with which its person approves one item, as it was read; the session gains nothing by it."""

    token: Annotated[str, described("For `Authorization: Bearer`, when that item is approved.")]
    expires_in: Annotated[int, described("Seconds until it expires.", unit="seconds")]

    def __repr__(self) -> str:
        return "ItemToken()"


@command("identity", proofs=SESSION, roles=ADMINS)
@refuses(refusals.FactorAbsent)
class NewItemChallenge(Command[dict[str, Any]], frozen=True):
    """Make what a passkey signs to approve one item: approval and digest stand under the challenge's MAC."""

    approval: Uuid
    digest: Digest


@command("identity", proofs=SESSION, roles=ADMINS, audit=("session.item_confirmed", "factor.refused"))
@refuses(refusals.ChallengeInvalid, refusals.Deactivated, refusals.NotAMember, refusals.PasskeyCloned)
@refuses(refusals.PasskeyInvalid, refusals.PasskeyMalformed, refusals.PasskeyUnknown, refusals.SsoRequired)
@refuses(refusals.TooManyAttempts, refusals.UserUnverified)
class TouchItem(Command[ItemToken], frozen=True):
    """Show a passkey for one item. The answer is a token to approve that item alone, for a minute."""

    approval: Uuid
    digest: Digest
    credential: dict[str, Any]

    def __repr__(self) -> str:
        return f"TouchItem({self.approval})"


@command(
    "identity", proofs=SESSION, roles=ANYBODY, bound=True, pages=True, audit=("session.stepped_up", "factor.refused")
)
@refuses(refusals.Deactivated, refusals.NotAMember, refusals.SsoRequired, refusals.TooManyAttempts)
class StepUp(Command[SignedIn], frozen=True):
    """Show a second factor: a code, or a passkey's assertion. The answer is a session with fresh MFA."""

    method: Literal["totp", "recovery", "sms", "passkey"]
    code: Code | None = None
    credential: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"StepUp({self.method})"
