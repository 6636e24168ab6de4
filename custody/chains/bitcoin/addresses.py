"""Addresses: base58check, bech32 (BIP-173) and bech32m (BIP-350), each for the scripts that it stands for."""

from typing import Final

from custody.chains import base58
from custody.chains.bitcoin.hashes import hash256
from custody.chains.bitcoin.networks import Network
from custody.chains.bitcoin.scripts import kind_of

_CHARACTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# What the checksum ends in, by the version of the witness.
_BECH32: Final = 1
_BECH32M: Final = 0x2BC830A3
_CHECKSUM: Final = 6
_VERSIONS: Final = 16


def address_of(script: bytes, network: Network) -> str | None:
    """The address of a script, or None of one that has none."""
    match kind_of(script):
        case "p2pkh":
            return _base58(network.p2pkh, script[3:23])
        case "p2sh":
            return _base58(network.p2sh, script[2:22])
        case "p2wpkh" | "p2wsh" | "p2tr" | "p2a" | "witness":
            return _bech32(network.hrp, script[0] and script[0] - 0x50, script[2:])
    return None


def script_at(address: str, network: Network) -> bytes | None:
    """The script of an address of this network, or None of any other text."""
    if (raw := base58.decode(address)) is not None and len(raw) == 25 and hash256(raw[:21])[:4] == raw[21:]:
        if raw[0] == network.p2pkh:
            return b"\x76\xa9\x14" + raw[1:21] + b"\x88\xac"
        return b"\xa9\x14" + raw[1:21] + b"\x87" if raw[0] == network.p2sh else None
    found = witness_of(address)
    if found is None or found[0] != network.hrp:
        return None
    _, version, program = found
    return bytes((0x50 + version if version else 0, len(program))) + program


def witness_of(address: str) -> tuple[str, int, bytes] | None:
    """Prefix, version and program of a segwit address of a kind that can be paid here; None of any other text."""
    if not address.isascii():
        # The Kelvin sign is a k in lower case.
        return None
    text = address.lower()
    prefix, _, data = text.rpartition("1")
    if address not in (text, address.upper()) or not prefix or len(data) <= _CHECKSUM or len(text) > 90:
        return None
    values = [_CHARACTERS.find(character) for character in data]
    if min(values) < 0:
        return None
    version, payload = values[0], values[1:-_CHECKSUM]
    if _polymod([*_expand(prefix), *values]) != (_BECH32M if version else _BECH32):
        return None
    program = _regroup(payload, 5, 8, pad=False)
    if program is None or len(program) not in ((20, 32) if not version else range(2, 41)) or version > _VERSIONS:
        return None
    return prefix, version, bytes(program)


def _base58(version: int, content: bytes) -> str:
    raw = bytes((version,)) + content
    return base58.encode(raw + hash256(raw)[:4])


def _bech32(prefix: str, version: int, program: bytes) -> str:
    values = [version, *(_regroup(program, 8, 5, pad=True) or ())]
    constant = _BECH32M if version else _BECH32
    checked = _polymod([*_expand(prefix), *values, *(0,) * _CHECKSUM]) ^ constant
    checksum = [(checked >> 5 * (5 - place)) & 31 for place in range(_CHECKSUM)]
    return prefix + "1" + "".join(_CHARACTERS[value] for value in (*values, *checksum))


def _expand(prefix: str) -> list[int]:
    return [ord(character) >> 5 for character in prefix] + [0] + [ord(character) & 31 for character in prefix]


def _polymod(values: list[int]) -> int:
    check = 1
    for value in values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            check ^= generator if top >> place & 1 else 0
    return check


def _regroup(values: bytes | list[int], before: int, after: int, *, pad: bool) -> list[int] | None:
    """The same bits in groups of another size; None where bits are left that say something."""
    kept, bits, found = 0, 0, []
    for value in values:
        kept, bits = kept << before | value, bits + before
        while bits >= after:
            bits -= after
            found.append(kept >> bits & (1 << after) - 1)
    rest = kept & (1 << bits) - 1
    if pad:
        return [*found, rest << after - bits] if bits else found
    return found if bits < before and not rest else None
