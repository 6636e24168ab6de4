"""Which chain family an address in a rule belongs to, and its one spelling. Decisions 3.

An address nobody can place is refused when the rule is set: it would match nothing, and a whitelist with a typing
mistake is noticed then instead of at the first payment.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Literal

from custody.chains.evm.address import parse_address
from custody.policies.types import InvalidPolicy

Family = Literal["evm", "solana", "bitcoin"]

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_BASE58 = re.compile(r"[1-9A-HJ-NP-Za-km-z]{26,44}\Z")
_SEGWIT = re.compile(r"(?:bc|tb|bcrt)1[02-9ac-hj-np-z]{8,87}\Z")
_SOLANA_BYTES: Final = 32
_BITCOIN_BYTES: Final = 25


def family_of(text: str) -> Family | None:
    """The family whose addresses look like this, or None. An EVM address is not yet checked for its checksum."""
    if text.startswith(("0x", "0X")):
        return "evm"
    if _SEGWIT.match(text.lower()) and text in (text.lower(), text.upper()):
        return "bitcoin"
    if not _BASE58.match(text):
        return None
    raw = _base58(text)
    if len(raw) == _SOLANA_BYTES:
        return "solana"
    is_bitcoin = len(raw) == _BITCOIN_BYTES and sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]
    return "bitcoin" if is_bitcoin else None


def same(address: str, family: str) -> str:
    """The spelling in which addresses of a family are compared."""
    if family == "evm" or (family == "bitcoin" and _SEGWIT.match(address.lower())):
        return address.lower()
    return address


def parse_addresses(texts: Iterable[str]) -> dict[Family, frozenset[str]]:
    """The addresses per family in their one spelling, or InvalidPolicy naming the bad one."""
    found: dict[Family, set[str]] = {"evm": set(), "solana": set(), "bitcoin": set()}
    for text in texts:
        family = family_of(text)
        if family is None:
            raise InvalidPolicy(f"{text!r} is not an EVM, Solana or Bitcoin address")
        found[family].add(parse_address(text) if family == "evm" else same(text, family))
    return {family: frozenset(addresses) for family, addresses in found.items()}


def _base58(text: str) -> bytes:
    number = 0
    for letter in text:
        number = number * 58 + _DIGITS[letter]
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
