"""What an opened envelope holds: a private key as wallets export it. Errors say nothing of it. Pure."""

import re
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.chains import base58

_EVM: Final = re.compile(rb"(?:0x)?([0-9a-fA-F]{64})\Z")
# The order of secp256k1: a key is a number from 1 below it.
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_SOLANA_BYTES: Final = 64
# 64 bytes in base58, leading zeros included.
_SOLANA_CHARACTERS: Final = range(64, 89)


class NoKey(ValueError):
    """It is not a private key of the chain."""


def secret_of(chain: str, plaintext: bytes) -> bytes:
    """The 32 bytes that are sealed for a wallet of the chain; NoKey for anything else."""
    return _evm(plaintext) if chain == "evm" else _solana(plaintext)


def _evm(plaintext: bytes) -> bytes:
    found = _EVM.match(plaintext)
    secret = bytes.fromhex(found[1].decode()) if found else b""
    if not 0 < int.from_bytes(secret) < _ORDER:
        raise NoKey
    return secret


def _solana(plaintext: bytes) -> bytes:
    """Seed and public key, which must belong together."""
    raw = _numbers(plaintext) if plaintext[:1] == b"[" else _text(plaintext)
    if len(raw) != _SOLANA_BYTES:
        raise NoKey
    seed, public = raw[:32], raw[32:]
    if Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw() != public:
        raise NoKey
    return seed


def _numbers(plaintext: bytes) -> bytes:
    try:
        return bytes(msgspec.json.decode(plaintext, type=list[int]))
    except (msgspec.MsgspecError, ValueError):
        raise NoKey from None


def _text(plaintext: bytes) -> bytes:
    try:
        raw = base58.decode(plaintext.decode("ascii"), _SOLANA_CHARACTERS)
    except ValueError:
        raise NoKey from None
    if raw is None:
        raise NoKey
    return raw
