"""The content of an opened envelope: a private key as wallets export it. Errors name forms, and nothing of it. Pure.

No text has two readings: hex has 64 or 128 digits, base58 of 32 bytes at most 44, and of 64 bytes as many as hex only
where all are zero.
"""

import re
from typing import Annotated, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta

from custody.chains import base58

# What is taken, with blanks and line ends around it.
FORMS: Final = {
    "evm": "32 bytes, in hex (64 digits, with or without 0x) or as a JSON array of 32 numbers",
    "solana": (
        "32 bytes (the seed) or 64 (the seed, and the public key that follows from it), in base58, in hex with or "
        "without 0x, or as a JSON array of numbers"
    ),
}
# An array of 64 numbers, each in a line of its own.
_MOST: Final = 2_048
_HEX: Final = re.compile(rb"(?:0[xX])?((?:[0-9a-fA-F]{64}){1,2})\Z")
_NUMBERS: Final = msgspec.json.Decoder(Annotated[list[Annotated[int, Meta(ge=0, le=255)]], Meta(max_length=64)])
# 32 and 64 bytes in base58, leading zeros included.
_BASE58: Final = range(32, 89)
# The order of secp256k1: a key is a number from 1 below it.
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


class NoKey(ValueError):
    """It is not a private key of the chain."""

    def __init__(self, chain: str) -> None:
        super().__init__(f"what is in it is no private key of {chain}: it must be {FORMS[chain]}")


def secret_of(chain: str, plaintext: bytes) -> bytes:
    """The 32 bytes that are sealed for a wallet of the chain; NoKey for anything else."""
    secret = _evm(plaintext) if chain == "evm" else _solana(plaintext)
    if secret is None:
        raise NoKey(chain)
    return secret


def _evm(plaintext: bytes) -> bytes | None:
    raw = _bytes(plaintext)
    return raw if raw is not None and len(raw) == 32 and 0 < int.from_bytes(raw) < _ORDER else None


def _solana(plaintext: bytes) -> bytes | None:
    """The seed; a public key behind it must be its own."""
    raw = _bytes(plaintext) or base58.decode(plaintext.strip().decode("ascii", "replace"), _BASE58)
    if raw is None or len(raw) not in (32, 64):
        return None
    seed, public = raw[:32], raw[32:]
    own = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return seed if public in (b"", own) else None


def _bytes(plaintext: bytes) -> bytes | None:
    """The bytes of hex or of a JSON array."""
    text = plaintext.strip() if len(plaintext) <= _MOST else b""
    if found := _HEX.match(text):
        return bytes.fromhex(found[1].decode())
    try:
        return bytes(_NUMBERS.decode(text)) if text.startswith(b"[") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
