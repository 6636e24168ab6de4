"""Messages that a wallet signs with personal_sign (EIP-191, version 0x45): what is signed, and by whom."""

import re
from typing import Final

from coincurve import PublicKey

from custody.chains.evm.address import address_of, keccak256
from custody.chains.evm.signature import ORDER
from custody.kit.errors import Unauthenticated

_SIGNATURE = re.compile(r"0x(?:[0-9a-fA-F]{128}|[0-9a-fA-F]{130})\Z")
_COMPACT: Final = 64
_TOP_BIT: Final = 1 << 255
_PREFIX: Final = b"\x19Ethereum Signed Message:\n"
_PARITY: Final = {0: 0, 1: 1, 27: 0, 28: 1}


class BadSignature(Unauthenticated):
    """The signature is not a valid signature of this message."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, code="signature_invalid")


def digest(message: str | bytes) -> bytes:
    """The 32 bytes that a wallet signs for this; the prefix keeps it from ever being a transaction."""
    raw = message.encode() if isinstance(message, str) else message
    return keccak256(_PREFIX + str(len(raw)).encode() + raw)


def recover(message: str | bytes, signature: str) -> str:
    """The EIP-55 address whose key made the signature (0x and 65 bytes r, s, v in hex), or BadSignature.

    The compact form of 64 bytes (EIP-2098), which has the parity in the first bit of s, is the same signature.
    Every well-formed signature belongs to *some* address, so the caller must compare it with the one claimed.
    """
    if not _SIGNATURE.match(signature):
        raise BadSignature("The signature must be 0x and 130 hexadecimal digits, or 128 in the compact form.")
    raw = _expand(bytes.fromhex(signature[2:]))
    parity = _PARITY.get(raw[64])
    # A high s is a second signature of the same message that no wallet makes (EIP-2): one message, one signature.
    if parity is None or not 0 < int.from_bytes(raw[32:64]) <= ORDER // 2:
        raise BadSignature
    try:
        key = PublicKey.from_signature_and_message(raw[:64] + bytes((parity,)), digest(message), hasher=None)
    except ValueError:
        raise BadSignature from None
    return address_of(key.format(compressed=False))


def _expand(raw: bytes) -> bytes:
    """The 65 bytes of a signature in either form."""
    if len(raw) != _COMPACT:
        return raw
    parity, s = divmod(int.from_bytes(raw[32:]), _TOP_BIT)
    return raw[:32] + s.to_bytes(32) + bytes((parity,))
