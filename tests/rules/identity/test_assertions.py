"""A vote: an assertion by this key, over this item, by this person, made at the approver's own origin."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.identity.assertions import (
    MAX_AUTHENTICATOR_DATA,
    MAX_CLIENT_DATA,
    BadPublicKey,
    Evidence,
    Matter,
    NotAVote,
    challenge,
    check,
    fingerprint,
    frame,
    from_base64url,
    load_key,
)
from custody.worker.sealing import fields
from tests.fixtures.approvers import PRESENT, RP_ID, VERIFIED, Authenticator, b64url, challenge_of

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/votes.json").read_text())
USER = "9b2f0c1e-0000-4000-8000-000000000001"
MATTER = Matter(
    "approval", "acme", "1" * 8 + "-1111-4111-8111-" + "1" * 12, "2" * 8 + "-2222-4222-8222-" + "2" * 12, "ab" * 32
)
UNTIL = 2_000_000_000
NONCE = bytes(range(16))
KEY = Authenticator()


def evidence(signed: bytes | None = None, **changed: Any) -> Evidence:
    made = KEY.assertion(challenge(MATTER, USER, NONCE, UNTIL) if signed is None else signed, **changed)
    names = ("authenticatorData", "clientDataJSON", "signature")
    return Evidence(*(from_base64url(made[name]) for name in names))


def counts(shown: Evidence, *, key: bytes = KEY.public_key, rp_id: str = RP_ID, matter: Matter = MATTER) -> bool:
    try:
        return check(shown, key, rp_id, matter, USER).until == UNTIL
    except NotAVote:
        return False


def test_an_honest_assertion_is_a_vote() -> None:
    vote = check(evidence(count=7), KEY.public_key, RP_ID, MATTER, USER)

    assert (vote.until, vote.count) == (UNTIL, 7)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["what"])
def test_the_vectors_hold(vector: dict[str, Any]) -> None:
    matter, nonce = Matter(**vector["matter"]), bytes.fromhex(vector["nonce"])
    public_key = base64.b64decode(vector["publicKey"])
    names = ("authenticatorData", "clientDataJSON", "signature")

    assert challenge(matter, vector["user"], nonce, vector["until"]).hex() == vector["challenge"]
    assert fingerprint(public_key) == vector["fingerprint"]
    shown = Evidence(*(from_base64url(vector[name]) for name in names))
    assert check(shown, public_key, vector["rpId"], matter, vector["user"]).until == vector["until"]


def test_the_challenge_is_the_one_that_the_page_describes() -> None:
    said = ["custody-approval/1", "acme", "approval", MATTER.subject, MATTER.version, MATTER.digest, USER, "approve"]

    assert challenge(MATTER, USER, NONCE, UNTIL) == challenge_of(said, UNTIL, NONCE)
    assert frame(*said, "ä") == fields(*said, "ä")


def test_every_flipped_bit_is_refused() -> None:
    honest = evidence()
    for name in ("authenticator_data", "client_data", "signature"):
        whole = getattr(honest, name)
        for bit in range(8 * len(whole)):
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            parts = {field: getattr(honest, field) for field in honest.__struct_fields__}
            assert not counts(Evidence(**{**parts, name: bytes(changed)})), (name, bit)


@pytest.mark.parametrize(
    "changed",
    [
        {"client": {"type": "webauthn.create"}},
        {"client": {"crossOrigin": True}},
        {"client": {"crossOrigin": "false"}},
        {"client": {"crossOrigin": None}},
        {"client": {"topOrigin": f"http://{RP_ID}:8123"}},
        {"client": {"topOrigin": None}},
        {"client": {"origin": "http://custody.example.com"}},
        {"client": {"origin": f"http://evil.{RP_ID}"}},
        {"client": {"origin": f"http://{RP_ID}.example.com"}},
        {"client": {"origin": f"http://{RP_ID}:8123/"}},
        {"client": {"origin": f"http://{RP_ID}:8123\n"}},
        {"client": {"origin": f"http://{RP_ID}:0"}},
        {"client": {"origin": f"ftp://{RP_ID}"}},
        {"client": {"origin": f"http://user@{RP_ID}"}},
        {"client": {"origin": [f"http://{RP_ID}"]}},
        {"client": {"challenge": "AAAA"}},
        {"client": {"challenge": 1}},
        {"client": {"challenge": b64url(challenge(MATTER, USER, NONCE, UNTIL)) + "="}},
        {"rp_id": "custody.example.com"},
        {"rp_id": "localhost"},
        {"flags": VERIFIED},
        {"flags": PRESENT},
        {"flags": 0},
        {"flags": PRESENT | VERIFIED | 0x40, "more": b"\x00" * 18},
        {"more": b"\xa0"},
        {"flags": PRESENT | VERIFIED | 0x80},
        {"flags": PRESENT | VERIFIED | 0x80, "more": b"\xa0" * (MAX_AUTHENTICATOR_DATA - 36)},
        {"raw_client": b"[]"},
        {"raw_client": b"\xff"},
        {"raw_client": b"[" * 2000},
        {"raw_client": b'{"type":"webauthn.get"' + b" " * MAX_CLIENT_DATA + b"}"},
        {"key": ec.generate_private_key(ec.SECP256R1())},
    ],
    ids=lambda changed: " ".join(map(str, changed)),
)
def test_another_assertion_is_no_vote(changed: dict[str, Any]) -> None:
    assert not counts(evidence(**changed))


def test_a_key_given_twice_in_client_data_is_no_vote() -> None:
    said = {
        "type": "webauthn.get",
        "challenge": b64url(challenge(MATTER, USER, NONCE, UNTIL)),
        "origin": f"http://{RP_ID}",
    }
    once = json.dumps(said)

    assert counts(evidence(raw_client=once.encode()))
    assert not counts(evidence(raw_client=('{"type":"webauthn.create",' + once[1:]).encode()))


@pytest.mark.parametrize("field", ["kind", "tenant", "subject", "version", "digest"])
def test_a_vote_is_for_one_matter(field: str) -> None:
    parts = {name: getattr(MATTER, name) for name in MATTER.__struct_fields__}

    assert not counts(evidence(), matter=Matter(**{**parts, field: "policies"}))


@pytest.mark.parametrize("decision", ["deny", "Approve", ""])
def test_another_decision_is_no_vote(decision: str) -> None:
    said = ["custody-approval/1", "acme", "approval", MATTER.subject, MATTER.version, MATTER.digest, USER, decision]

    assert not counts(evidence(challenge_of(said, UNTIL, NONCE)))


def test_a_later_end_is_another_challenge() -> None:
    signed = bytearray(challenge(MATTER, USER, NONCE, UNTIL))
    signed[19] += 1

    assert not counts(evidence(bytes(signed)))


def test_a_key_has_one_spelling() -> None:
    point = KEY.key.public_key()
    compressed = point.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    other_curve = ec.generate_private_key(ec.SECP256K1()).public_key()
    off_curve = KEY.public_key[:-1] + bytes([KEY.public_key[-1] ^ 1])

    assert hashlib.sha256(KEY.public_key).hexdigest() == fingerprint(KEY.public_key)
    load_key(KEY.public_key)
    for bad in (
        compressed,
        off_curve,
        KEY.public_key + b"\0",
        other_curve.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        os.urandom(91),
        b"",
    ):
        with pytest.raises(BadPublicKey):
            load_key(bad)


def pad_client_data(length: int) -> Evidence:
    """An honest assertion whose clientDataJSON has as many bytes."""
    said = json.dumps(
        {
            "type": "webauthn.get",
            "challenge": b64url(challenge(MATTER, USER, NONCE, UNTIL)),
            "origin": f"http://{RP_ID}",
        }
    )
    return evidence(raw_client=said.ljust(length).encode())


def test_each_part_may_be_as_long_as_the_page_says_and_no_longer() -> None:
    extended = PRESENT | VERIFIED | 0x80
    assert counts(pad_client_data(2048))
    assert counts(evidence(flags=extended, more=b"x" * (1024 - 37)))
    for odd, why in (
        (pad_client_data(2049), "clientDataJSON has more than 2,048 bytes or none"),
        (Evidence(evidence().authenticator_data, b"", b"x"), "clientDataJSON has more than 2,048 bytes or none"),
        (Evidence(evidence().authenticator_data, b"0", b"x"), "clientDataJSON is not an object"),
        (evidence(flags=extended, more=b"x" * (1025 - 37)), "authenticatorData must have 37 to 1,024 bytes"),
        (Evidence(b"x" * 36, b"{}", b"x"), "authenticatorData must have 37 to 1,024 bytes"),
        (Evidence(evidence().authenticator_data, b"{}", b""), "the signature has more than 72 bytes or none"),
        (Evidence(evidence().authenticator_data, b"{}", b"x" * 73), "the signature has more than 72 bytes or none"),
        (Evidence(evidence().authenticator_data, b"{}", b"x" * 72), "the type in clientDataJSON"),
        (Evidence(evidence().authenticator_data, b"{}", b"x"), "the type in clientDataJSON"),
    ):
        with pytest.raises(NotAVote, match=why):
            check(odd, KEY.public_key, RP_ID, MATTER, USER)


@pytest.mark.parametrize("cut", [slice(51), slice(0), slice(0, 53)])
def test_a_challenge_of_another_length_is_named(cut: slice) -> None:
    with pytest.raises(NotAVote, match="the challenge does not have 52 bytes"):
        check(evidence((challenge(MATTER, USER, NONCE, UNTIL) + b"x")[cut]), KEY.public_key, RP_ID, MATTER, USER)


def test_a_counter_has_four_bytes() -> None:
    for count in (0, 0x01020304, 0xFFFFFFFF):
        made = evidence(count=count, flags=PRESENT | VERIFIED | 0x80, more=b"extensions")
        assert check(made, KEY.public_key, RP_ID, MATTER, USER).count == count


def test_an_attestation_is_no_part_of_a_vote() -> None:
    assert not counts(evidence(flags=PRESENT | VERIFIED | 0x40 | 0x80, more=b"attested and extended"))


_SHORT = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + KEY.key.public_key().public_bytes(
    Encoding.X962, PublicFormat.CompressedPoint
)


def test_another_spelling_of_a_key_is_no_key() -> None:
    no_point = KEY.public_key[:27] + b"\1" * 64
    for odd in (_SHORT, KEY.public_key + b"\0", KEY.public_key[:-1], no_point, b""):
        with pytest.raises(BadPublicKey):
            load_key(odd)
