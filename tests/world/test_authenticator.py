"""The Python authenticator passes the library's judgement when it is honest, and fails it with every single lie."""

from typing import Any

import msgspec
import pytest
import webauthn
from webauthn.helpers import options_to_json
from webauthn.helpers.exceptions import InvalidAuthenticationResponse, InvalidRegistrationResponse
from webauthn.helpers.structs import PublicKeyCredentialDescriptor

from tests.outside.authenticator import Authenticator, base64

pytestmark = pytest.mark.long

RP, ORIGIN = "app.test", "https://app.test"
CHALLENGE = b"c" * 32
LIES: list[dict[str, Any]] = [
    {"origin": "https://evil.test"},
    {"rp_id": "evil.test"},
    {"challenge": base64(b"d" * 32)},
    {"user_verified": False},
    {"user_present": False},
    {"kind": "payment.get"},
]
NAMES = [next(iter(lie)) for lie in LIES]


def creation() -> dict[str, Any]:
    made = webauthn.generate_registration_options(
        rp_id=RP, rp_name="App", user_name="ann", user_id=b"person", challenge=CHALLENGE
    )
    return msgspec.json.decode(options_to_json(made))


def request(*allowed: bytes) -> dict[str, Any]:
    made = webauthn.generate_authentication_options(
        rp_id=RP, challenge=CHALLENGE, allow_credentials=[PublicKeyCredentialDescriptor(id=each) for each in allowed]
    )
    return msgspec.json.decode(options_to_json(made))


def register(credential: dict[str, Any]) -> Any:
    return webauthn.verify_registration_response(
        credential=credential,
        expected_challenge=CHALLENGE,
        expected_rp_id=RP,
        expected_origin=ORIGIN,
        require_user_verification=True,
    )


def assert_passkey(credential: dict[str, Any], known: Any, count: int = 0) -> Any:
    return webauthn.verify_authentication_response(
        credential=credential,
        expected_challenge=CHALLENGE,
        expected_rp_id=RP,
        expected_origin=ORIGIN,
        credential_public_key=known.credential_public_key,
        credential_current_sign_count=count,
        require_user_verification=True,
    )


def test_an_honest_passkey_registers_and_signs_in() -> None:
    mine = Authenticator(ORIGIN)
    known = register(mine.create(creation()))

    first = assert_passkey(mine.get(request(known.credential_id)), known)
    second = assert_passkey(mine.get(request()), known, count=first.new_sign_count)

    assert known.user_verified
    assert (first.new_sign_count, second.new_sign_count) == (1, 2)


@pytest.mark.parametrize("lie", LIES, ids=NAMES)
def test_a_registration_with_a_lie_is_refused(lie: dict[str, Any]) -> None:
    with pytest.raises(InvalidRegistrationResponse):
        register(Authenticator(ORIGIN).create(creation(), **lie))


@pytest.mark.parametrize("lie", LIES, ids=NAMES)
def test_an_assertion_with_a_lie_is_refused(lie: dict[str, Any]) -> None:
    mine = Authenticator(ORIGIN)
    known = register(mine.create(creation()))

    with pytest.raises(InvalidAuthenticationResponse):
        assert_passkey(mine.get(request(), **lie), known)


def test_a_counter_that_stands_still_is_refused() -> None:
    mine = Authenticator(ORIGIN)
    known = register(mine.create(creation()))

    with pytest.raises(InvalidAuthenticationResponse, match="sign count"):
        assert_passkey(mine.get(request(), sign_count=7), known, count=7)


def test_another_passkeys_signature_is_refused() -> None:
    mine, other = Authenticator(ORIGIN), Authenticator(ORIGIN)
    known = register(mine.create(creation()))
    register(other.create(creation()))

    with pytest.raises(InvalidAuthenticationResponse, match="signature"):
        assert_passkey(other.get(request()), known)


def test_the_passkey_that_the_options_allow_is_used() -> None:
    mine = Authenticator(ORIGIN)
    first = register(mine.create(creation()))
    register(mine.create(creation()))

    assert mine.get(request(first.credential_id))["id"] == base64(first.credential_id)
