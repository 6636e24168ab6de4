"""Seal a message to one browser (RFC 8291, RFC 8188) and sign for its push service (RFC 8292).

The key that signs is the subscription's own: the browser made it, and it is good for that subscription alone. So there
is no key of the service that could push to every browser, and none here that outlives a message.
"""

import base64
import os
from typing import Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.kit.web_urls import read_url

# Push services take bodies of this size: one record, with a head of 86 bytes and a tag of 16.
_RECORD: Final = 4096
ROOM: Final = _RECORD - 86 - 16 - 1
# Who forwards it learns no length, for most messages are padded to this one.
_PADDED: Final = 2048
# What nobody fetched by then is not shown: it may be decided.
_KEPT_SECONDS: Final = 3600
# Push services take at most 24 hours.
_GOOD_SECONDS: Final = 12 * 3600
_CURVE: Final = ec.SECP256R1()
_encode = msgspec.json.Encoder().encode


class Keys(NamedTuple):
    """The keys of a subscription: the browser's point and secret, and the key that signs for it."""

    point: bytes
    secret: bytes
    sender: ec.EllipticCurvePrivateKey


def read_keys(token: str) -> Keys:
    """Read the sealed keys of a subscription."""
    point, secret, sender = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    return Keys(point, secret, ec.derive_private_key(int.from_bytes(sender), _CURVE))


def seal(plain: bytes, keys: Keys) -> bytes:
    """Seal a message so that the browser alone opens it."""
    mine, salt = ec.generate_private_key(_CURVE), os.urandom(16)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, keys.point)
    point = _point(mine.public_key())
    shared = mine.exchange(ec.ECDH(), theirs)
    root = _derive(keys.secret, b"WebPush: info\0" + keys.point + point, 32, shared)
    key = _derive(salt, b"Content-Encoding: aes128gcm\0", 16, root)
    nonce = _derive(salt, b"Content-Encoding: nonce\0", 12, root)
    # A two ends the last record; zeros behind it are padding.
    record = (plain + b"\2").ljust(_PADDED, b"\0")
    return salt + _RECORD.to_bytes(4) + bytes([len(point)]) + point + AESGCM(key).encrypt(nonce, record, None)


def headers_for(endpoint: str, keys: Keys, subject: str, now: int, *, is_grave: bool) -> dict[str, str]:
    """The headers of a push: who sends it, how long it is kept, and whether it may wake a telephone."""
    read = read_url(endpoint)
    audience = f"{read.scheme}://{read.host}" + ("" if read.port is None else f":{read.port}")
    claims = {"aud": audience, "exp": now + _GOOD_SECONDS, "sub": subject}
    signed = f"{_text(_encode({'typ': 'JWT', 'alg': 'ES256'}))}.{_text(_encode(claims))}"
    r, s = decode_dss_signature(keys.sender.sign(signed.encode(), ec.ECDSA(SHA256())))
    token = f"{signed}.{_text(r.to_bytes(32) + s.to_bytes(32))}"
    return {
        "Authorization": f"vapid t={token},k={_text(_point(keys.sender.public_key()))}",
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(_KEPT_SECONDS),
        "Urgency": "high" if is_grave else "normal",
    }


def _derive(salt: bytes, info: bytes, length: int, of: bytes) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(of)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
