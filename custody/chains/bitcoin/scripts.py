"""The scripts that Custody pays to and spends from; a script of no known kind is None."""

import re
from typing import Final, Literal

import coincurve

from custody.chains.bitcoin.hashes import digest, hash160
from custody.chains.bitcoin.types import AddressType

# What nodes relay: `witness` are the versions that have no meaning yet, and `op_return` has data, whatever it is.
ScriptKind = Literal["p2pkh", "p2sh", "p2wpkh", "p2wsh", "p2tr", "p2a", "witness", "p2pk", "multisig", "op_return"]
_WITNESS: Final[dict[bytes, ScriptKind]] = {b"\x00\x14": "p2wpkh", b"\x00\x20": "p2wsh", b"\x51\x20": "p2tr"}
_ANCHOR: Final = b"\x51\x02\x4e\x73"
_OP_RETURN: Final = b"\x6a"
_KEY: Final = rb"(?:\x21[\x02\x03][\x00-\xff]{32}|\x41[\x04\x06\x07][\x00-\xff]{64})"
_BARE: Final = re.compile(rb"(?:" + _KEY + rb"\xac|([\x51-\x53])((?:" + _KEY + rb"){1,3})([\x51-\x53])\xae)")


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
    """Build the script that a p2sh-p2wpkh script is the hash of."""
    return b"\x00\x14" + hash160(public_key)


def taproot_tweak(public_key: bytes) -> bytes:
    """Compute the tweak of the internal key (BIP-341), without a tree of scripts."""
    return digest("TapTweak", public_key[1:])


def output_key(public_key: bytes) -> bytes:
    """The x coordinate that a p2tr script pays (BIP-86)."""
    even = coincurve.PublicKey(b"\x02" + public_key[1:])
    return even.add(taproot_tweak(public_key)).format()[1:]


def kind_of(script: bytes) -> ScriptKind | None:
    """Find the kind of a script; None for one that is not relayed, or not known."""
    if len(script) == 25 and script[:3] == b"\x76\xa9\x14" and script[-2:] == b"\x88\xac":
        return "p2pkh"
    if len(script) == 23 and script[:2] == b"\xa9\x14" and script[-1] == 0x87:
        return "p2sh"
    if is_witness(script):
        later: ScriptKind = "p2a" if script == _ANCHOR else "witness"
        return _WITNESS.get(script[:2], later if script[0] else None)
    if script[:1] == _OP_RETURN:
        return "op_return"
    if not (bare := _BARE.fullmatch(script)):
        return None
    needed, keys, number = bare.groups()
    if number is None:
        return "p2pk"
    return "multisig" if needed[0] <= number[0] == 0x50 + len(re.findall(_KEY, keys)) else None


def is_witness(script: bytes) -> bool:
    """Say whether it is a version and a witness program (BIP-141), of any version."""
    return 4 <= len(script) <= 42 and script[1] == len(script) - 2 and (not script[0] or 0x51 <= script[0] <= 0x60)


def pushes_alone(script: bytes) -> bool:
    """Say whether a script that begins with OP_RETURN goes on with whole pushes and nothing else."""
    at = 1
    while at < len(script):
        code = script[at]
        at += 1
        if code <= 0x4B:
            at += code
        elif code <= 0x4E:
            width = 1 << code - 0x4C
            at += width + int.from_bytes(script[at : at + width], "little")
        elif code > 0x60:
            return False
    return at == len(script)
