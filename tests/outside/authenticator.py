"""A passkey authenticator with the browser around it, in Python: it answers truly, and lies where a test says so."""

import hashlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import cbor2
import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40
_AAGUID = bytes(16)


class Passkey(msgspec.Struct):
    """One key pair, for one person at one site."""

    id: bytes
    key: ec.EllipticCurvePrivateKey
    rp_id: str
    user_handle: bytes
    sign_count: int = 0


class Authenticator:
    """Holds passkeys for the pages of an origin; options and answers are the JSON forms of WebAuthn level 3."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.passkeys: list[Passkey] = []

    def create(
        self,
        options: dict[str, Any],
        *,
        origin: str | None = None,
        rp_id: str | None = None,
        challenge: str | None = None,
        user_verified: bool = True,
        user_present: bool = True,
        kind: str = "webauthn.create",
    ) -> dict[str, Any]:
        """Make a passkey and register it; each keyword is what it should be unless the test says otherwise."""
        rp_id = rp_id or str(options["rp"]["id"])
        user = unbase64(options["user"]["id"])
        passkey = Passkey(os.urandom(32), ec.generate_private_key(ec.SECP256R1()), rp_id, user)
        self.passkeys.append(passkey)
        held = _AAGUID + len(passkey.id).to_bytes(2) + passkey.id + _cose(passkey.key)
        data = _data(rp_id, _flags(user_present, user_verified) | _HAS_KEY, 0) + held
        response = {
            "clientDataJSON": base64(_client_data(kind, challenge or options["challenge"], origin or self._origin)),
            "attestationObject": base64(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
            "transports": ["internal"],
        }
        return _credential(passkey, response)

    def get(
        self,
        options: dict[str, Any],
        *,
        origin: str | None = None,
        rp_id: str | None = None,
        challenge: str | None = None,
        user_verified: bool = True,
        user_present: bool = True,
        kind: str = "webauthn.get",
        sign_count: int | None = None,
        passkey: Passkey | None = None,
    ) -> dict[str, Any]:
        """Sign a challenge with the newest passkey that the options allow, or with the one that is given."""
        passkey = passkey or self._choose(options)
        passkey.sign_count += 1
        count = passkey.sign_count if sign_count is None else sign_count
        data = _data(rp_id or passkey.rp_id, _flags(user_present, user_verified), count)
        said = _client_data(kind, challenge or options["challenge"], origin or self._origin)
        signature = passkey.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": base64(said),
            "authenticatorData": base64(data),
            "signature": base64(signature),
            "userHandle": base64(passkey.user_handle),
        }
        return _credential(passkey, response)

    def _choose(self, options: dict[str, Any]) -> Passkey:
        allowed = {unbase64(each["id"]) for each in options.get("allowCredentials") or []}
        fitting = [
            each for each in self.passkeys if each.rp_id == options["rpId"] and (not allowed or each.id in allowed)
        ]
        assert fitting, "no passkey here that the options allow"
        return fitting[-1]


def base64(content: bytes) -> str:
    """As WebAuthn's JSON has bytes: the alphabet of URLs, no padding."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def unbase64(text: str) -> bytes:
    """The bytes again."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _client_data(kind: str, challenge: str, origin: str) -> bytes:
    return msgspec.json.encode({"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False})


def _flags(present: bool, verified: bool) -> int:
    return present * _PRESENT | verified * _VERIFIED


def _data(rp_id: str, flags: int, count: int) -> bytes:
    return hashlib.sha256(rp_id.encode()).digest() + flags.to_bytes() + count.to_bytes(4)


def _cose(key: ec.EllipticCurvePrivateKey) -> bytes:
    """ES256 on P-256, as RFC 9053 numbers it."""
    point = key.public_key().public_numbers()
    return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)})


def _credential(passkey: Passkey, response: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": base64(passkey.id),
        "rawId": base64(passkey.id),
        "type": "public-key",
        "response": response,
        "authenticatorAttachment": "platform",
        "clientExtensionResults": {},
    }
