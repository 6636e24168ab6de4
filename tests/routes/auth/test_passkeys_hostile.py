"""Passkeys over HTTP, where somebody lies: other sites, other challenges, other people, broken and forged content."""

import hashlib
import os
from contextlib import closing
from typing import Any

import asyncpg
import cbor2
import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator, base64, unbase64
from tests.routes.auth.factors import refusal

NEW, ADD = "/auth/passkeys/register/options", "/auth/passkeys/register/verify"
ASK, LOGIN = "/auth/passkeys/login/options", "/auth/passkeys/login/verify"
SHOW, STEP_UP = "/auth/mfa/passkey/options", "/auth/mfa/passkey/step-up"
LIES: list[dict[str, Any]] = [
    {"origin": "https://evil.example"},
    {"origin": "http://localhost"},
    {"origin": "http://localhost:1"},
    {"origin": "null"},
    {"rp_id": "evil.example"},
    {"rp_id": "127.0.0.1"},
    {"user_present": False},
]
NONSENSE: list[Any] = [
    {},
    {"id": 1},
    {"type": "password"},
    {"response": {}},
    {"response": []},
    {"response": {"clientDataJSON": "!"}},
    {"response": {"clientDataJSON": "e30"}},
    {"response": {"clientDataJSON": "A"}},
    {"rawId": "A"},
    {"response": {"clientDataJSON": "A" * 20_000}},
]
# COSE keys: broken, of other kinds, and such as would take long to check with.
KEYS: list[Any] = [
    {},
    4,
    [],
    "x",
    {1: 2},
    {1: 7, 3: -7},
    {1: 1, 3: -8, -1: 6, -2: b"1"},
    {1: 2, 3: -7, -1: 1, -2: b"", -3: b""},
    {1: 2, 3: -7, -1: 9, -2: b"1" * 32, -3: b"1" * 32},
    {1: 2, 3: -7, -1: 1, -2: b"1" * 32, -3: b"1" * 32},
    {1: 3, 3: -37, -1: b"1" * 256, -2: b"\1\0\1"},
    {1: 3, 3: -257, -1: b"\xff" * 2048, -2: b"\1\0\1"},
    {1: 3, 3: -257, -1: b"\xff" * 256, -2: b"\xff" * 256},
    {1: 3, 3: -257, -1: b"\xff" * 256, -2: b"\3"},
    {1: 3, 3: -257, -1: b"\xff" * 512, -2: b"\xff" * 300},
    {1: 3, 3: -257, -1: b"\xff" * 128, -2: b"\1\0\1"},
    {1: 3, 3: -257, -1: b"\x0f", -2: b"\3"},
    {1: 3, 3: -257, -1: b"\xff" * 513, -2: b"\1\0\1"},
]


@pytest.fixture
def key_holder(person: Person, device: Authenticator) -> Person:
    """Somebody with one passkey, on the device."""
    person.ok("POST", ADD, {"credential": device.create(person.ok("POST", NEW, {}))})
    return person


@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.create"}], ids=str)
def test_sign_in_elsewhere_is_none_here(
    key_holder: Person, device: Authenticator, fresh: Person, lie: dict[str, Any]
) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}), **lie)

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_invalid")


@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.get"}], ids=str)
def test_a_passkey_of_elsewhere_is_not_registered(person: Person, device: Authenticator, lie: dict[str, Any]) -> None:
    answer = device.create(person.ok("POST", NEW, {}), **lie)

    assert refusal(person.post(ADD, json={"credential": answer})) == (400, "passkey_refused")


@pytest.mark.parametrize(("inside", "status"), [(True, 401), (False, 200)])
def test_a_page_inside_another_is_not_the_site(
    key_holder: Person, device: Authenticator, fresh: Person, inside: bool, status: int
) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}))
    response, key = answer["response"], device.passkeys[0].key
    said = msgspec.json.decode(unbase64(response["clientDataJSON"])) | {"crossOrigin": inside}
    said = msgspec.json.encode(said)
    signed = unbase64(response["authenticatorData"]) + hashlib.sha256(said).digest()
    response |= {
        "clientDataJSON": base64(said),
        "signature": base64(key.sign(signed, ec.ECDSA(hashes.SHA256()))),
    }

    assert fresh.post(LOGIN, json={"credential": answer}).status_code == status


def test_an_answer_works_once(key_holder: Person, device: Authenticator, fresh: Person) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}))

    assert fresh.post(LOGIN, json={"credential": answer}).status_code == 200
    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "challenge_invalid")


def test_a_wrong_answer_uses_its_challenge_up(key_holder: Person, device: Authenticator, fresh: Person) -> None:
    options = fresh.ok("POST", ASK, {})
    fresh.post(LOGIN, json={"credential": device.get(options, origin="https://evil.example")})

    assert refusal(fresh.post(LOGIN, json={"credential": device.get(options)})) == (401, "challenge_invalid")


def test_a_challenge_serves_its_purpose_alone(key_holder: Person, device: Authenticator, fresh: Person) -> None:
    to_sign_in, to_step_up = fresh.ok("POST", ASK, {}), key_holder.ok("POST", SHOW, {})
    answers = device.get(to_sign_in), device.get(to_step_up)

    assert refusal(key_holder.post(STEP_UP, json={"credential": answers[0]})) == (401, "challenge_invalid")
    assert refusal(fresh.post(LOGIN, json={"credential": answers[1]})) == (401, "challenge_invalid")
    # Neither was used up by that.
    assert fresh.post(LOGIN, json={"credential": answers[0]}).status_code == 200
    assert key_holder.post(STEP_UP, json={"credential": answers[1]}).status_code == 200


def test_a_challenge_to_register_does_not_sign_in(person: Person, device: Authenticator, fresh: Person) -> None:
    options = person.ok("POST", NEW, {})
    person.ok("POST", ADD, {"credential": device.create(person.ok("POST", NEW, {}))})
    answer = device.get(options | {"rpId": "localhost"})

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "challenge_invalid")
    assert refusal(person.post(STEP_UP, json={"credential": answer})) == (401, "challenge_invalid")


def test_a_challenge_serves_its_own_session_alone(service: Service, key_holder: Person, device: Authenticator) -> None:
    options = key_holder.ok("POST", SHOW, {})
    with closing(sign_in(service, key_holder.wallet)) as same, closing(sign_in(service)) as other:
        for somebody in (same, other):
            answer = somebody.post(STEP_UP, json={"credential": device.get(options)})
            assert refusal(answer) == (401, "challenge_invalid")


def test_a_passkey_is_registered_by_the_session_that_asked(
    service: Service, person: Person, device: Authenticator
) -> None:
    answer = device.create(person.ok("POST", NEW, {}))
    with closing(sign_in(service)) as thief:
        assert refusal(thief.post(ADD, json={"credential": answer})) == (401, "challenge_invalid")
    assert person.post(ADD, json={"credential": answer}).status_code == 200


async def test_a_challenge_ends_after_five_minutes(
    key_holder: Person, device: Authenticator, fresh: Person, owner: asyncpg.Connection
) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}))
    await owner.execute("UPDATE challenges SET expires_at = expires_at - interval '300 seconds'")

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "challenge_invalid")


async def test_a_challenge_that_the_signer_did_not_make_is_none(
    key_holder: Person, device: Authenticator, fresh: Person, owner: asyncpg.Connection
) -> None:
    made_up = os.urandom(56)
    await owner.execute(
        "INSERT INTO challenges VALUES (sha256($1::bytea), 'sign_in', NULL, NULL, now() + interval '5 minutes')",
        made_up,
    )
    answer = device.get(fresh.ok("POST", ASK, {}), challenge=base64(made_up))

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "challenge_invalid")


def test_an_unknown_passkey(person: Person, device: Authenticator, fresh: Person) -> None:
    device.create(person.ok("POST", NEW, {}))
    answer = device.get(fresh.ok("POST", ASK, {}))

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_unknown")


def test_another_person_s_passkey_steps_nobody_up(service: Service, key_holder: Person, device: Authenticator) -> None:
    with closing(sign_in(service)) as thief:
        own = Authenticator(f"http://localhost:{service.port}")
        thief.ok("POST", ADD, {"credential": own.create(thief.ok("POST", NEW, {}))})
        answer = own.get(key_holder.ok("POST", SHOW, {}), passkey=own.passkeys[0])

    assert refusal(key_holder.post(STEP_UP, json={"credential": answer})) == (401, "passkey_unknown")


@pytest.mark.parametrize("handle", [None, base64(bytes(16)), ""])
def test_a_passkey_says_whose_it_is(
    key_holder: Person, device: Authenticator, fresh: Person, handle: str | None
) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}))
    answer["response"]["userHandle"] = handle

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_unknown")


def test_a_signature_by_another_key(key_holder: Person, device: Authenticator, fresh: Person) -> None:
    forged = msgspec.structs.replace(device.passkeys[0], key=ec.generate_private_key(ec.SECP256R1()))
    answer = device.get(fresh.ok("POST", ASK, {}), passkey=forged)

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_invalid")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE passkeys p SET public_key = t.public_key FROM passkeys t WHERE p.user_id = $1 AND t.user_id = $2",
        "UPDATE passkeys p SET credential_id = t.credential_id FROM gone t WHERE p.user_id = $1 AND t.user_id = $2",
        "UPDATE passkeys p SET user_id = $1 FROM gone t WHERE p.user_id = $2 AND t.user_id = $2",
    ],
    ids=["public key", "credential id", "user"],
)
async def test_a_passkey_that_was_changed_in_the_database_signs_nobody_in(
    service: Service, key_holder: Person, device: Authenticator, fresh: Person, owner: asyncpg.Connection, change: str
) -> None:
    """Each change alone lets a thief's key answer for somebody else, if nobody looked at the row's MAC."""
    thief_s = Authenticator(f"http://localhost:{service.port}")
    with closing(sign_in(service)) as thief:
        thief.ok("POST", ADD, {"credential": thief_s.create(thief.ok("POST", NEW, {}))})
    await owner.execute("CREATE TEMP TABLE gone AS SELECT * FROM passkeys WHERE user_id = $1::text::uuid", thief.id)
    if "SET credential_id" in change:
        await owner.execute("DELETE FROM passkeys WHERE user_id = $1", thief.id)
    await owner.execute(change, key_holder.id, thief.id)
    known = device if "SET public_key" in change else thief_s
    forged = msgspec.structs.replace(
        thief_s.passkeys[0], id=known.passkeys[0].id, user_handle=device.passkeys[0].user_handle
    )
    answer = thief_s.get(fresh.ok("POST", ASK, {}), passkey=forged)

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (503, "sealed_value_tampered")


@pytest.mark.parametrize("broken", NONSENSE, ids=lambda broken: str(broken)[:40])
def test_a_malformed_webauthn_answer_is_refused_as_such(
    key_holder: Person, device: Authenticator, fresh: Person, broken: dict[str, Any]
) -> None:
    good = device.get(fresh.ok("POST", ASK, {}))
    response = broken.get("response")
    if isinstance(response, dict) and response:
        broken = broken | {"response": good["response"] | response}
    sent = {"credential": good | broken if broken else {}}

    assert refusal(fresh.post(LOGIN, json=sent)) == (400, "passkey_malformed")
    assert refusal(key_holder.post(STEP_UP, json=sent)) == (400, "passkey_malformed")


@pytest.mark.parametrize("data", [b"", b"\0" * 36, b"\xff" * 37, b"\0" * 37 + b"\xff" * 100, b"\xa0" * 300])
def test_broken_data_of_a_device_is_no_sign_in(
    key_holder: Person, device: Authenticator, fresh: Person, data: bytes
) -> None:
    answer = device.get(fresh.ok("POST", ASK, {}))
    answer["response"]["authenticatorData"] = base64(data)

    assert refusal(fresh.post(LOGIN, json={"credential": answer})) == (401, "passkey_invalid")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key)[:30])
def test_a_key_of_no_known_kind_is_not_registered(person: Person, device: Authenticator, key: Any) -> None:
    answer = _with_key(device.create(person.ok("POST", NEW, {})), key)

    assert refusal(person.post(ADD, json={"credential": answer})) == (400, "passkey_refused")


@pytest.mark.parametrize("size", [256, 512])
def test_an_rsa_key_as_devices_make_it_is_registered(person: Person, device: Authenticator, size: int) -> None:
    key = {1: 3, 3: -257, -1: b"\xff" * size, -2: b"\1\0\1"}
    answer = _with_key(device.create(person.ok("POST", NEW, {})), key)

    assert person.post(ADD, json={"credential": answer}).status_code == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"fmt": "packed", "attStmt": {"alg": -7, "sig": b"x", "x5c": [b"x"]}},
        {"fmt": "tpm", "attStmt": {}},
        {"fmt": "android-safetynet", "attStmt": {"ver": "1", "response": b"x"}},
        {"fmt": 1},
        {"attStmt": {"sig": b"x"}},
        {"fmt": "packed", "attStmt": {"alg": -7, "sig": b"x"}},
        {"authData": b"x"},
        {"authData": 1},
    ],
    ids=lambda changed: str(changed)[:30],
)
def test_attestations_are_not_read(person: Person, device: Authenticator, changed: dict[str, Any]) -> None:
    answer = device.create(person.ok("POST", NEW, {}))
    held = cbor2.loads(unbase64(answer["response"]["attestationObject"]))
    answer["response"]["attestationObject"] = base64(cbor2.dumps(held | changed))

    assert refusal(person.post(ADD, json={"credential": answer})) == (400, "passkey_refused")


def _with_key(answer: dict[str, Any], key: Any) -> dict[str, Any]:
    """A device's answer with another public key in it."""
    held = cbor2.loads(unbase64(answer["response"]["attestationObject"]))
    before = held["authData"][: 37 + 16 + 2 + 32]
    answer["response"]["attestationObject"] = base64(cbor2.dumps(held | {"authData": before + cbor2.dumps(key)}))
    return answer
