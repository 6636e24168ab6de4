"""The scripts that Custody pays to and spends from; a script of no known kind is None."""

from collections.abc import Mapping
from typing import Final, Literal

import coincurve

from custody.chains.bitcoin.hashes import hash160, tagged
from custody.chains.bitcoin.types import AddressType

ScriptKind = Literal["p2pkh", "p2sh", "p2wpkh", "p2wsh", "p2tr", "op_return"]
# Below so many satoshis an output costs more to spend than it is worth, and nodes relay none.
DUST: Final[Mapping[ScriptKind, int]] = {"p2pkh": 546, "p2sh": 540, "p2wpkh": 294, "p2wsh": 330, "p2tr": 330}
# Of a script with data, its opcodes included.
MAX_OP_RETURN: Final = 83
_OP_RETURN: Final = 0x6A


def script_of(address_type: AddressType, public_key: bytes) -> bytes:
    """The script that pays a compressed key; of p2tr its key path, without any script beside it."""
    if address_type == "p2tr":
        return b"\x51\x20" + output_key(public_key)
    if address_type == "p2wpkh":
        return b"\x00\x14" + hash160(public_key)
    if address_type == "p2sh-p2wpkh":
        return b"\xa9\x14" + hash160(redeem_script_of(public_key)) + b"\x87"
    return b"\x76\xa9\x14" + hash160(public_key) + b"\x88\xac"


def redeem_script_of(public_key: bytes) -> bytes:
    """What a p2sh-p2wpkh script is the hash of."""
    return b"\x00\x14" + hash160(public_key)


def taproot_tweak(public_key: bytes) -> bytes:
    """What the internal key is tweaked by (BIP-341), without a tree of scripts."""
    return tagged("TapTweak", public_key[1:])


def output_key(public_key: bytes) -> bytes:
    """The x coordinate that a p2tr script pays (BIP-86)."""
    even = coincurve.PublicKey(b"\x02" + public_key[1:])
    return even.add(taproot_tweak(public_key)).format()[1:]


def kind_of(script: bytes) -> ScriptKind | None:
    """What a script is; None of those that are not relayed, or not known."""
    match len(script), script[:2], script[-2:]:
        case 25, b"\x76\xa9", b"\x88\xac" if script[2] == 0x14:
            return "p2pkh"
        case 23, b"\xa9\x14", _ if script[-1] == 0x87:
            return "p2sh"
        case 22, b"\x00\x14", _:
            return "p2wpkh"
        case 34, b"\x00\x20", _:
            return "p2wsh"
        case 34, b"\x51\x20", _:
            return "p2tr"
    return "op_return" if script[:1] == bytes((_OP_RETURN,)) and len(script) <= MAX_OP_RETURN else None
