"""Public keys of P-256 as people register them: one key, one spelling."""

from base64 import b64decode, b64encode
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

# SubjectPublicKeyInfo of id-ecPublicKey on prime256v1 with an uncompressed point; its 64 bytes follow.
_HEAD: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_SPKI_BYTES: Final = 91
_BASE64_CHARACTERS: Final = 124


def read_spki(text: str) -> bytes | None:
    """The 91 bytes of a canonical SPKI in standard base64; None for anything else, however well it would load."""
    if len(text) != _BASE64_CHARACTERS:
        return None
    try:
        spki = b64decode(text, validate=True)
    except ValueError:
        return None
    # Spare bits, a compressed point or named parameters would be second spellings of one key.
    if len(spki) != _SPKI_BYTES or not spki.startswith(_HEAD) or b64encode(spki).decode() != text:
        return None
    return spki if _loads(spki) else None


def key_of(spki: bytes) -> EllipticCurvePublicKey:
    """The key of a canonical SPKI; ValueError where its point is not on the curve."""
    key = load_der_public_key(spki)
    if not isinstance(key, EllipticCurvePublicKey):
        raise TypeError("not an elliptic curve's key")
    return key


def _loads(spki: bytes) -> bool:
    try:
        key_of(spki)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True
