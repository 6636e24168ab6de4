"""Second factors and passkeys as answers show them, and what people send."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.identity.addresses import PHONE_PATTERN
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Digest, DisplayName, TenantId, Uuid
from custody.people.types import AtAppClient, CodeText

Factor = Literal["totp", "sms", "passkey"]
# Loose on purpose: what is wrong with a number is said by the signer in a sentence.
PhoneText = Annotated[
    str,
    Meta(min_length=1, max_length=16, examples=["+41790000000"], extra_json_schema={"pattern": PHONE_PATTERN}),
]
# The shape is WebAuthn's own (RegistrationResponseJSON, AuthenticationResponseJSON); the signer reads it strictly.
Credential = dict[str, Any]
# PublicKeyCredentialCreationOptionsJSON or PublicKeyCredentialRequestOptionsJSON, as browsers take them.
Options = dict[str, Any]


class CodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A one-time or recovery code."""

    code: Annotated[CodeText, described("The code.")]

    def __repr__(self) -> str:
        return "CodeBody()"


class PhoneBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A telephone number in international form, such as +41790000000."""

    phone: Annotated[PhoneText, described("The number, such as +41790000000.")]


class CredentialBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of the browser's `navigator.credentials.get`, as JSON."""

    credential: Annotated[Credential, described("An `AuthenticationResponseJSON`.")]

    def __repr__(self) -> str:
        return "CredentialBody()"


class ItemBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The item that a touch is for."""

    approval_id: Annotated[Uuid, described("The approval.")]
    digest: Annotated[Digest, described("The `digest` of the item as it was read; the token is good for that order.")]


class TouchedItemBody(ItemBody, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The same item, with the result of the browser's `navigator.credentials.get`, as JSON."""

    credential: Annotated[Credential, described("An `AuthenticationResponseJSON`.")]

    def __repr__(self) -> str:
        return "TouchedItemBody()"


class NewPasskeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of the browser's `navigator.credentials.create`, as JSON, and a name for the passkey."""

    credential: Annotated[Credential, described("A `RegistrationResponseJSON`.")]
    name: Annotated[DisplayName | None, described("A name for the passkey.")] = None

    def __repr__(self) -> str:
        return "NewPasskeyBody()"


class PasskeySignInBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The result of the browser's `navigator.credentials.get`, as JSON."""

    credential: Annotated[Credential, described("An `AuthenticationResponseJSON`.")]
    tenant_id: Annotated[TenantId | None, described("The tenant to sign in to; without it the person's own.")] = None
    app_client_id: AtAppClient = None

    def __repr__(self) -> str:
        return "PasskeySignInBody()"


class Method(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A second factor; a telephone number shows its last digits only."""

    kind: Annotated[Factor, described("The kind of factor.")]
    confirmed_at: Annotated[Instant | None, described("Time of the confirmation.")] = None
    hint: Annotated[str | None, described("The last digits of a number, or the name of a passkey.")] = None


class Factors(msgspec.Struct, frozen=True, rename="camel"):
    """The second factors of a person, and when this session last verified one."""

    methods: Annotated[list[Method], described("The factors.")]
    recovery_codes_left: Annotated[int, described("Number of unused recovery codes.")]
    verified_at: Annotated[Instant | None, described("Time of this session's last verification.")]


class Passkey(msgspec.Struct, frozen=True, rename="camel"):
    """One of a person's passkeys."""

    id: Annotated[Id, described("The passkey's id.")]
    name: Annotated[str, described("Its name.")]
    transports: Annotated[list[str], described("Transports of the authenticator, such as `internal` or `usb`.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    last_used_at: Annotated[Instant | None, described("Time of the last use.")]
