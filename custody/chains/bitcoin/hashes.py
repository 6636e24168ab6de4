"""The hashes of Bitcoin."""

import hashlib
from collections.abc import Callable

from Crypto.Hash import RIPEMD160


def sha256(content: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(content).digest()


def hash256(content: bytes) -> bytes:
    """SHA-256 twice: of transactions, and of what is signed."""
    return sha256(sha256(content))


def _portable(content: bytes) -> bytes:
    return RIPEMD160.new(content).digest()


def _ripemd160() -> Callable[[bytes], bytes]:
    # An OpenSSL without its legacy provider has none.
    try:
        hashlib.new("ripemd160", b"", usedforsecurity=False)
    except ValueError:
        return _portable
    return lambda content: hashlib.new("ripemd160", content, usedforsecurity=False).digest()


_ripemd = _ripemd160()


def hash160(content: bytes) -> bytes:
    """RIPEMD-160 of SHA-256: of keys and scripts."""
    return _ripemd(sha256(content))


def digest(tag: str, content: bytes) -> bytes:
    """A tagged hash (BIP-340)."""
    prefix = sha256(tag.encode())
    return sha256(prefix + prefix + content)
