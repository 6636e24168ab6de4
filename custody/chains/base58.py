"""Base58 as Bitcoin and Solana spell bytes."""

import re
from typing import Final

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_TEXT: Final = re.compile(r"[1-9A-HJ-NP-Za-km-z]+\Z")
_OF_AN_ADDRESS: Final = range(26, 45)


def decode(text: str, lengths: range = _OF_AN_ADDRESS) -> bytes | None:
    """The bytes of a text of such a length, or None; the work grows with its square."""
    if len(text) not in lengths or not _TEXT.match(text):
        return None
    number = 0
    for letter in text:
        number = number * 58 + _DIGITS[letter]
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)


def encode(raw: bytes) -> str:
    """The text of bytes as long as an address."""
    number, letters = int.from_bytes(raw), ""
    while number:
        number, digit = divmod(number, 58)
        letters = _ALPHABET[digit] + letters
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + letters
