"""Votes: what an approver's key signs, and whether an assertion of it is a vote. Pure; normative text: docs/signers.md.

The reader takes what an authenticator makes for `navigator.credentials.get` and nothing else: every size is bounded
before anything is parsed, JSON may name a key once, and what is not exactly as expected is refused with the reason.
"""

import base64
import binascii
import hashlib
import hmac
import json  # noqa: TID251 - only it shows duplicate keys
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

Kind = Literal["approval", "policies"]
FORMAT: Final = "custody-approval/1"
# A vote ends at most so long after it was given, in seconds.
MAX_SECONDS: Final = 24 * 60 * 60
MAX_CLIENT_DATA: Final = 2048
MIN_AUTHENTICATOR_DATA: Final = 37
MAX_AUTHENTICATOR_DATA: Final = 1024
MAX_SIGNATURE: Final = 72
NONCE_BYTES: Final = 16
CHALLENGE_BYTES: Final = NONCE_BYTES + 4 + 32
# The canonical SPKI of a P-256 key: this, and the point without compression.
_SPKI: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
SPKI_BYTES: Final = 91
_USER_PRESENT, _USER_VERIFIED, _ATTESTED, _EXTENDED = 0x01, 0x04, 0x40, 0x80


class NotAVote(Exception):
    """The assertion is no vote; the text says why, as the end of a sentence."""


class BadPublicKey(ValueError):
    """Not the canonical SPKI of a P-256 key."""


class Evidence(msgspec.Struct, frozen=True):
    """An assertion as the authenticator and the browser made it."""

    authenticator_data: bytes
    client_data: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Evidence()"


class Matter(msgspec.Struct, frozen=True):
    """The matter that is voted on.

    An order: its approval, its transaction, its digest. A set of policies: the agent, the version that it replaces,
    the hash of the set.
    """

    kind: Kind
    tenant: str
    subject: str
    version: str
    digest: str


class Vote(msgspec.Struct, frozen=True):
    """The rest of a valid assertion beside yes: when the vote ends (Unix seconds), and the authenticator's counter."""

    until: int
    count: int


def fingerprint(public_key: bytes) -> str:
    """By what rules name a key: SHA-256 of its canonical SPKI, in hex."""
    return hashlib.sha256(public_key).hexdigest()


def load_key(public_key: bytes) -> EllipticCurvePublicKey:
    """A key from its canonical SPKI, or BadPublicKey: one key has one spelling, and so one fingerprint."""
    if len(public_key) != SPKI_BYTES or not public_key.startswith(_SPKI):
        raise BadPublicKey
    try:
        key = load_der_public_key(public_key)
    except ValueError:
        raise BadPublicKey from None
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise BadPublicKey
    return key


def challenge(matter: Matter, user: str, nonce: bytes, until: int) -> bytes:
    """The 52 bytes that an approver's key is asked to sign."""
    head = nonce + until.to_bytes(4, "big")
    said = (
        FORMAT,
        matter.tenant,
        matter.kind,
        matter.subject,
        matter.version,
        matter.digest,
        user,
        "approve",
        head.hex(),
    )
    return head + hashlib.sha256(frame(*said)).digest()


def frame(*parts: str) -> bytes:
    """Texts as one unambiguous byte string: each as UTF-8, with its length in four bytes in front."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def check(evidence: Evidence, public_key: bytes, rp_id: str, matter: Matter, user: str) -> Vote:
    """Check that an assertion is this person's yes to this matter, by this key; NotAVote otherwise.

    Whether the key may vote, and whether the vote has ended, is for the caller to say.
    """
    _check_sizes(evidence)
    until = _check_client_data(evidence.client_data, rp_id, matter, user)
    count = _check_authenticator_data(evidence.authenticator_data, rp_id)
    signed = evidence.authenticator_data + hashlib.sha256(evidence.client_data).digest()
    try:
        load_key(public_key).verify(evidence.signature, signed, ECDSA(SHA256()))
    except (BadPublicKey, InvalidSignature):
        raise NotAVote("the signature is not of this key") from None
    return Vote(until, count)


def _check_sizes(evidence: Evidence) -> None:
    if not 0 < len(evidence.client_data) <= MAX_CLIENT_DATA:
        raise NotAVote(f"clientDataJSON has more than {MAX_CLIENT_DATA:,} bytes or none")
    if not MIN_AUTHENTICATOR_DATA <= len(evidence.authenticator_data) <= MAX_AUTHENTICATOR_DATA:
        raise NotAVote(f"authenticatorData must have {MIN_AUTHENTICATOR_DATA} to {MAX_AUTHENTICATOR_DATA:,} bytes")
    if not 0 < len(evidence.signature) <= MAX_SIGNATURE:
        raise NotAVote(f"the signature has more than {MAX_SIGNATURE} bytes or none")


def _check_client_data(client_data: bytes, rp_id: str, matter: Matter, user: str) -> int:
    said = _read(client_data)
    if said.get("type") != "webauthn.get":
        raise NotAVote("the type in clientDataJSON is not webauthn.get")
    if said.get("crossOrigin", False) is not False or "topOrigin" in said:
        raise NotAVote("the assertion was made inside another page")
    origin = said.get("origin")
    if not isinstance(origin, str) or not re.fullmatch(rf"https?://{re.escape(rp_id)}(:[1-9][0-9]{{0,4}})?", origin):
        raise NotAVote(f"the origin is not http(s)://{rp_id}")
    signed = _decode(said.get("challenge"))
    if len(signed) != CHALLENGE_BYTES:
        raise NotAVote(f"the challenge does not have {CHALLENGE_BYTES} bytes")
    until = int.from_bytes(signed[NONCE_BYTES : NONCE_BYTES + 4], "big")
    if not hmac.compare_digest(signed, challenge(matter, user, signed[:NONCE_BYTES], until)):
        raise NotAVote("the challenge is not of this item, digest and person")
    return until


def _check_authenticator_data(data: bytes, rp_id: str) -> int:
    flags = data[32]
    if not hmac.compare_digest(data[:32], hashlib.sha256(rp_id.encode()).digest()):
        raise NotAVote(f"authenticatorData is not of the rp id {rp_id}")
    if not flags & _USER_PRESENT or not flags & _USER_VERIFIED:
        raise NotAVote("the authenticator did not verify the person")
    if flags & _ATTESTED or (len(data) > MIN_AUTHENTICATOR_DATA) != bool(flags & _EXTENDED):
        raise NotAVote("authenticatorData has parts that its flags do not name")
    return int.from_bytes(data[33:37], "big")


def _read(client_data: bytes) -> Mapping[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise NotAVote("clientDataJSON names one key twice")
        return dict(pairs)

    try:
        said = json.loads(client_data.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise NotAVote("clientDataJSON is not JSON") from None
    if not isinstance(said, dict):
        raise NotAVote("clientDataJSON is not an object")
    return said


def _decode(text: object) -> bytes:
    try:
        return from_base64url(text)
    except ValueError:
        raise NotAVote("the challenge is not base64url") from None


def from_base64url(text: object) -> bytes:
    """Bytes from base64url without padding, in its one spelling; ValueError otherwise."""
    if not isinstance(text, str):
        raise ValueError("not base64url")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64url") from None
    if base64url(raw) != text:
        raise ValueError("not base64url")
    return raw


def base64url(raw: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
