"""Bitcoin scripts as the addresses that people compare: base58, bech32 (BIP-173) and bech32m (BIP-350). Pure."""

import hashlib
from typing import Final

from words.texts.chains import BITCOIN_NETWORKS

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# What a checksum comes to, by the version of the witness.
_ENDS: Final = (1, 0x2BC830A3)
_CHECKSUM: Final = 6


def kind_of(script: bytes) -> str | None:
    """Tell the kind of a script, if it is one of those that have addresses here."""
    if len(script) == 25 and script.startswith(b"\x76\xa9\x14") and script.endswith(b"\x88\xac"):
        return "p2pkh"
    if len(script) == 23 and script.startswith(b"\xa9\x14") and script.endswith(b"\x87"):
        return "p2sh"
    if not 4 <= len(script) <= 42 or script[1] != len(script) - 2:
        return None
    known = {b"\x00\x14": "p2wpkh", b"\x00\x20": "p2wsh", b"\x51\x20": "p2tr"}.get(script[:2])
    # Later versions of the witness have no meaning yet, but addresses.
    return known or ("witness" if 0x51 <= script[0] <= 0x60 else None)


def address_of(script: bytes, network: str) -> str | None:
    """The address of a script on a network by its name, such as `mainnet`; None where it has none."""
    found = BITCOIN_NETWORKS.get(network)
    if found is None:
        return None
    match kind_of(script):
        case "p2pkh":
            return _base58(bytes((found.p2pkh,)) + script[3:23])
        case "p2sh":
            return _base58(bytes((found.p2sh,)) + script[2:22])
        case "p2wpkh" | "p2wsh" | "p2tr" | "witness":
            return _bech32(found.prefix, script[0] and script[0] - 0x50, script[2:])
    return None


def _base58(content: bytes) -> str:
    raw = content + hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, shown = int.from_bytes(raw), ""
    while number:
        number, digit = divmod(number, 58)
        shown = _BASE58[digit] + shown
    return "1" * (len(raw) - len(raw.lstrip(b"\x00"))) + shown


def _bech32(prefix: str, version: int, program: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in program)
    bits += "0" * (-len(bits) % 5)
    values = [version, *(int(bits[at : at + 5], 2) for at in range(0, len(bits), 5))]
    expanded = [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]
    check = _polymod([*expanded, *values, *(0,) * _CHECKSUM]) ^ _ENDS[version > 0]
    values += [check >> 5 * (_CHECKSUM - 1 - place) & 31 for place in range(_CHECKSUM)]
    return f"{prefix}1" + "".join(_BECH32[value] for value in values)


def _polymod(values: list[int]) -> int:
    check = 1
    for value in values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            check ^= generator if top >> place & 1 else 0
    return check
