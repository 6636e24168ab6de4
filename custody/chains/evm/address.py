"""EVM addresses: keccak-256, EIP-55 checksums, and the address of a public key."""

import functools
import re

from Crypto.Hash import keccak

from custody.kit.errors import Invalid

ZERO_ADDRESS = "0x" + "0" * 40
_HEX = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_LENGTH = 42
_RAW_KEY = 64
_LOWER_CASE = 0x20
_HIGH_NIBBLES = bytes(_LOWER_CASE if chr(code) in "89abcdef" else 0 for code in range(256))
_LETTERS = bytes(_LOWER_CASE if chr(code) in "abcdef" else 0 for code in range(256))


class BadAddress(Invalid):
    """An EVM address is 0x and 40 hex digits; mixed case must be a correct EIP-55 checksum."""


def keccak256(message: bytes) -> bytes:
    """The Keccak-256 hash that Ethereum uses, which is not SHA3-256."""
    return keccak.new(digest_bits=256, data=message).digest()


@functools.lru_cache(maxsize=8192)
def checksum(address: str) -> str:
    """The EIP-55 spelling of an address in any case."""
    digits = address[2:].lower().encode()
    nibbles = keccak256(digits).hex()[:40].encode()
    # All forty digits at once: where the nibble is above 7 and the digit a letter, take away the bit of lower case.
    high = int.from_bytes(nibbles.translate(_HIGH_NIBBLES))
    letters = int.from_bytes(digits.translate(_LETTERS))
    return "0x" + (int.from_bytes(digits) - (high & letters)).to_bytes(40).decode()


def parse_address(text: str) -> str:
    """The address in lower case, or BadAddress.

    Digits all in one case carry no checksum and pass; mixed case is a checksum, so a wrong one is a typing mistake
    that would send money nowhere.
    """
    if len(text) != _LENGTH or not _HEX.match(text):
        raise BadAddress
    digits = text[2:]
    if digits != digits.lower() and digits != digits.upper() and text != checksum(text):
        raise BadAddress(f"The checksum of {text} is wrong; correct the address, or write it in lower case.")
    return text.lower()


@functools.lru_cache(maxsize=8192)
def address_of(public_key: bytes) -> str:
    """The checksummed address of an uncompressed public key, with or without its leading 04."""
    point = public_key[1:] if len(public_key) == _RAW_KEY + 1 and public_key.startswith(b"\x04") else public_key
    if len(point) != _RAW_KEY:
        raise ValueError("an uncompressed public key has 64 bytes, or 65 with the leading 04")
    return checksum("0x" + keccak256(point)[-20:].hex())
