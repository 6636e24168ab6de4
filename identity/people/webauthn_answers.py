"""The answers of passkeys, read strictly and checked by the library for WebAuthn level 2.

Everything here was written by a stranger. It is bounded and decoded before the library sees it, and whatever the
library stumbles over is an answer that does not hold. Attestation is not asked for: which device a person owns is
private, and chains of certificates are not read here.
"""

import base64
import binascii
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from msgspec import Meta, field
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    options_to_json_dict,
    parse_attestation_object,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AttestationFormat,
    AttestedCredentialData,
    AuthenticationCredential,
    AuthenticatorAssertionResponse,
    AuthenticatorAttestationResponse,
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from custody.protocol.identity.refusals import PasskeyInvalid, PasskeyMalformed, PasskeyRefused

NAME = "Custody"
SECONDS = 300
MAX_CREDENTIAL_ID = 1023
# Room for RSA-4096; a longer key only costs anyone who must check with it.
MAX_PUBLIC_KEY = 1024
# A shorter one is factored, a longer one or another exponent is slow; authenticators make neither.
RSA_BITS, RSA_EXPONENT = range(2048, 4096 + 1), 65_537
ALGORITHMS = [
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.EDDSA,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,
]
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What the library and those below it raise over content that is not what it should be.
_STUMBLES = (
    WebAuthnException,
    UnsupportedAlgorithm,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class Site(msgspec.Struct, frozen=True):
    """The site that a passkey belongs to: a host, and the origins of its pages."""

    rp_id: str
    origins: list[str]


class Registered(msgspec.Struct, frozen=True):
    """A passkey that may be kept."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: list[str]


class Asserted(msgspec.Struct, frozen=True):
    """The content of a passkey's signature."""

    sign_count: int
    user_verified: bool


Short = Annotated[str, Meta(max_length=2048)]
Long = Annotated[str, Meta(max_length=16_384)]


class _Attestation(msgspec.Struct, frozen=True):
    client_data: Long = field(name="clientDataJSON")
    attestation: Long = field(name="attestationObject")
    transports: Annotated[list[Annotated[str, Meta(max_length=32, pattern=r"^[a-z-]+\Z")]], Meta(max_length=8)] = []


class _Assertion(msgspec.Struct, frozen=True):
    client_data: Long = field(name="clientDataJSON")
    authenticator_data: Long = field(name="authenticatorData")
    signature: Short
    user_handle: Short | None = field(name="userHandle", default=None)


class _Answer[R](msgspec.Struct, frozen=True):
    id: Short
    raw_id: Short = field(name="rawId")
    type: Literal["public-key"]
    response: R


class _ClientData(msgspec.Struct, frozen=True):
    challenge: Short
    cross_origin: bool = field(name="crossOrigin", default=False)


class Attestation:
    """The answer to options for registration; PasskeyMalformed if it is none."""

    def __init__(self, given: dict[str, Any]) -> None:
        answer = _convert(given, _Answer[_Attestation])
        self.challenge = _challenge(answer.response.client_data)
        self._transports = answer.response.transports
        self._object = _bytes(answer.response.attestation)
        response = AuthenticatorAttestationResponse(_bytes(answer.response.client_data), self._object)
        self._credential = RegistrationCredential(answer.id, _bytes(answer.raw_id), response)

    def check(self, site: Site, challenge: bytes) -> Registered:
        """The passkey, or PasskeyRefused. One that asks nobody who they are would be no second factor."""
        try:
            attested = parse_attestation_object(self._object)
            if attested.fmt not in (AttestationFormat.NONE, AttestationFormat.PACKED):
                raise PasskeyRefused
            if attested.att_stmt.x5c is not None:
                raise PasskeyRefused
            _check_key(attested.auth_data.attested_credential_data)
            verified = verify_registration_response(
                credential=self._credential,
                expected_challenge=challenge,
                expected_rp_id=site.rp_id,
                expected_origin=site.origins,
                supported_pub_key_algs=ALGORITHMS,
                require_user_verification=True,
            )
        except _STUMBLES:
            raise PasskeyRefused from None
        credential_id, public_key = verified.credential_id, verified.credential_public_key
        if len(credential_id) > MAX_CREDENTIAL_ID or len(public_key) > MAX_PUBLIC_KEY:
            raise PasskeyRefused
        return Registered(credential_id, public_key, verified.sign_count, list(dict.fromkeys(self._transports)))


class Assertion:
    """The answer to options for sign-in or step-up; PasskeyMalformed if it is none."""

    def __init__(self, given: dict[str, Any]) -> None:
        answer = _convert(given, _Answer[_Assertion])
        said = answer.response
        self.challenge = _challenge(said.client_data)
        self.user_handle = _bytes(said.user_handle) if said.user_handle else None
        self.credential_id = _bytes(answer.raw_id)
        response = AuthenticatorAssertionResponse(
            _bytes(said.client_data), _bytes(said.authenticator_data), _bytes(said.signature)
        )
        self._credential = AuthenticationCredential(answer.id, self.credential_id, response)

    def check(self, site: Site, challenge: bytes, public_key: bytes) -> Asserted:
        """Return what was signed, or raise PasskeyInvalid. The sign count is the caller's to judge."""
        try:
            verified = verify_authentication_response(
                credential=self._credential,
                expected_challenge=challenge,
                expected_rp_id=site.rp_id,
                expected_origin=site.origins,
                credential_public_key=public_key,
                credential_current_sign_count=0,
            )
        except _STUMBLES:
            raise PasskeyInvalid from None
        return Asserted(verified.new_sign_count, verified.user_verified)


def site_of(public_url: str) -> Site:
    """The site at this address; on loopback it is `localhost`, for browsers make no passkey for an address."""
    parts = urlsplit(public_url)
    host, port = parts.hostname or "", parts.port
    suffix = "" if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f":{port}"
    own = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{suffix}"
    if host not in _LOOPBACK:
        return Site(host, [own])
    return Site("localhost", list(dict.fromkeys((own, f"{parts.scheme}://localhost{suffix}"))))


def registration_options(
    site: Site, challenge: bytes, user: bytes, user_name: str, known: list[bytes]
) -> dict[str, Any]:
    """Build what a browser's `navigator.credentials.create` takes; no passkey that is `known` is made twice."""
    options = generate_registration_options(
        rp_id=site.rp_id,
        rp_name=NAME,
        user_id=user,
        user_name=user_name,
        challenge=challenge,
        timeout=SECONDS * 1000,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(each) for each in known],
        supported_pub_key_algs=ALGORITHMS,
    )
    return options_to_json_dict(options)


def assertion_options(site: Site, challenge: bytes, allowed: list[bytes], *, verify_user: bool) -> dict[str, Any]:
    """Build what a browser's `navigator.credentials.get` takes; with none `allowed`, the person chooses an account."""
    required, preferred = UserVerificationRequirement.REQUIRED, UserVerificationRequirement.PREFERRED
    options = generate_authentication_options(
        rp_id=site.rp_id,
        challenge=challenge,
        timeout=SECONDS * 1000,
        allow_credentials=[PublicKeyCredentialDescriptor(each) for each in allowed],
        user_verification=required if verify_user else preferred,
    )
    return options_to_json_dict(options)


def _check_key(attested: AttestedCredentialData | None) -> None:
    """Raise PasskeyRefused unless this is a key worth checking with; before anything is checked with it."""
    if attested is None:
        raise PasskeyRefused
    key = decoded_public_key_to_cryptography(decode_credential_public_key(attested.credential_public_key))
    if isinstance(key, RSAPublicKey) and (key.key_size not in RSA_BITS or key.public_numbers().e != RSA_EXPONENT):
        raise PasskeyRefused


def _convert[T](given: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError:
        raise PasskeyMalformed from None


def _challenge(client_data: str) -> bytes:
    """The challenge that was answered, on a page of our own and not inside somebody else's."""
    try:
        said = msgspec.json.decode(_bytes(client_data), type=_ClientData)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PasskeyMalformed from None
    if said.cross_origin:
        raise PasskeyInvalid
    return _bytes(said.challenge)


def _bytes(text: str) -> bytes:
    """The bytes of base64 in the alphabet of URLs, without padding, as WebAuthn's JSON has them."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise PasskeyMalformed from None
