"""Second factors and passkeys as answers show them, and what people send. Decisions 5."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.shapes import DisplayName, TenantId
from custody.people.types import CodeText, SignedIn

Factor = Literal["totp", "sms", "passkey"]
# Loose on purpose: what is wrong with a number is said by the signer in a sentence.
PhoneText = Annotated[str, Meta(min_length=1, max_length=16)]
# The shape is WebAuthn's own (RegistrationResponseJSON, AuthenticationResponseJSON); the signer reads it strictly.
Credential = dict[str, Any]
# PublicKeyCredentialCreationOptionsJSON or PublicKeyCredentialRequestOptionsJSON, as browsers take them.
Options = dict[str, Any]


class CodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A code that somebody read or kept."""

    code: CodeText

    def __repr__(self) -> str:
        return "CodeBody()"


class PhoneBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A telephone number in international form, such as +41790000000."""

    phone: PhoneText


class CredentialBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the browser's `navigator.credentials.get` gave, as JSON."""

    credential: Credential

    def __repr__(self) -> str:
        return "CredentialBody()"


class NewPasskeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the browser's `navigator.credentials.create` gave, as JSON, and a name to know it by."""

    credential: Credential
    name: DisplayName | None = None

    def __repr__(self) -> str:
        return "NewPasskeyBody()"


class PasskeySignInBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the browser's `navigator.credentials.get` gave, as JSON."""

    credential: Credential
    tenant_id: TenantId | None = None

    def __repr__(self) -> str:
        return "PasskeySignInBody()"


class Method(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A second factor; of a telephone number the last digits."""

    kind: Factor
    confirmed_at: str | None = None
    hint: str | None = None


class Factors(msgspec.Struct, frozen=True, rename="camel"):
    """The second factors of a person, and when this session last showed one."""

    methods: list[Method]
    recovery_codes_left: int
    verified_at: str | None


class TotpEnrolment(msgspec.Struct, frozen=True, rename="camel"):
    """A seed for an authenticator app, shown this once; it counts after its first code."""

    secret: str
    otpauth_uri: str
    expires_at: str

    def __repr__(self) -> str:
        return "TotpEnrolment()"


class Confirmed(SignedIn, frozen=True, rename="camel", omit_defaults=True):
    """A session with fresh MFA; with recovery codes, this once, if there were none."""

    recovery_codes: list[str] | None = None

    def __repr__(self) -> str:
        return "Confirmed()"


class RecoveryCodes(msgspec.Struct, frozen=True, rename="camel"):
    """Ten codes, shown this once, each of which works once."""

    recovery_codes: list[str]

    def __repr__(self) -> str:
        return "RecoveryCodes()"


class RemovedFactor(msgspec.Struct, frozen=True):
    """What no longer counts: the kind of factor, or a passkey's id."""

    deleted: str


class NewPasskey(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A passkey that was registered just now; with recovery codes, this once, if there were none."""

    id: str
    name: str
    created_at: str
    transports: list[str]
    recovery_codes: list[str] | None = None

    def __repr__(self) -> str:
        return "NewPasskey()"


class Passkey(msgspec.Struct, frozen=True, rename="camel"):
    """One of a person's passkeys."""

    id: str
    name: str
    transports: list[str]
    created_at: str
    last_used_at: str | None
