"""Signatures by keys of others, Ed25519 as RFC 8032 has it."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify(key: bytes, signature: bytes, content: bytes) -> bool:
    """Say whether a signature of 64 bytes over the content is by the key of 32 bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True
