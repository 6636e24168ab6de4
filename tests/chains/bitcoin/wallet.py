"""A wallet whose keys are known here, coins of it, and PSBTs taken apart into their fields to be changed."""

import hashlib
from base64 import b64encode
from typing import Literal

from embit.psbt import PSBT
from embit.script import Script

from custody.chains.bitcoin import psbt as psbts
from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.finalise import finalise
from custody.chains.bitcoin.keys import Root, account_of, child, fingerprint, root_of
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import script_of
from custody.chains.bitcoin.sign import sign
from custody.chains.bitcoin.spends import prove
from custody.chains.bitcoin.types import PURPOSES, FinalTransaction, SignedPsbt, Spend
from tests.fixtures.bitcoin import SOMEBODY, coin, spend, text

ROOT: Root = root_of(hashlib.sha256(b"a wallet of tests").digest())
STRANGER: Root = root_of(hashlib.sha256(b"somebody else").digest())
TYPES = tuple(PURPOSES)
BY_DEFAULT = Bounds()


def own_script(kind: str = "p2wpkh", branch: int = 0, index: int = 0, *, account: int = 0, root: Root = ROOT) -> Script:
    """The script of one of the wallet's addresses."""
    scope = parse_scope(f"bitcoin:regtest:{kind}:{account}:0:0")
    return Script(script_of(scope.address_type, child(account_of(root, scope.account_path), branch, index)))


def payment(
    kind: str = "p2wpkh", amount: int = 50_000, *, fee: int = 1_000, inputs: int = 1, to: Script = SOMEBODY
) -> PSBT:
    """A PSBT that pays somebody from coins of the first address, and the rest back to it."""
    own = own_script(kind)
    each = (amount + fee + 20_000) // inputs
    coins = [(coin(own, each, f"{kind} {number}", outputs=2, at=1), 1) for number in range(inputs)]
    return spend(coins, [(to, amount), (own, each * inputs - amount - fee)])


def prove_psbt(
    psbt: PSBT | bytes | str,
    kind: str = "p2wpkh",
    bounds: Bounds | Literal["none"] = BY_DEFAULT,
    *,
    index: int = 0,
    root: Root = ROOT,
) -> Spend:
    """Prove a PSBT with our code, held to bounds or to none."""
    said = psbt if isinstance(psbt, str) else b64encode(psbt).decode() if isinstance(psbt, bytes) else text(psbt)
    scope = parse_scope(f"bitcoin:regtest:{kind}:0:0:{index}")
    return prove(psbts.read(said), scope, account_of(root, scope.account_path), None if bounds == "none" else bounds)


def sign_spend(found: Spend, root: Root = ROOT) -> SignedPsbt:
    """Signed with the wallet's root."""
    return sign(found, root)


def finish(found: Spend, root: Root = ROOT) -> FinalTransaction:
    """Signed and finished."""
    done = finalise(sign(found, root), found)
    assert done is not None
    return done


def address_fields(kind: str, branch: int, index: int, *, account: int = 0, root: Root = ROOT) -> dict[str, str]:
    """One of the wallet's addresses as the route shows it, for hints."""
    scope = parse_scope(f"bitcoin:regtest:{kind}:{account}:0:0")
    purpose, network, number = scope.account_path
    return {
        "derivationPath": f"m/{purpose}'/{network}'/{number}'/{branch}/{index}",
        "publicKey": child(account_of(root, scope.account_path), branch, index).hex(),
        "fingerprint": fingerprint(root).hex(),
        "addressType": kind,
    }


class Fields:
    """A PSBT as maps of fields, read without any check, so that each can be changed."""

    def __init__(self, raw: bytes) -> None:
        self.maps: list[list[tuple[bytes, bytes]]] = [[]]
        at = 5
        while at < len(raw):
            size, at = _size(raw, at)
            if not size:
                self.maps.append([])
                continue
            key, at = raw[at : at + size], at + size
            size, at = _size(raw, at)
            self.maps[-1].append((key, raw[at : at + size]))
            at += size
        self.maps.pop()

    def put(self, place: int, key: bytes, value: bytes) -> "Fields":
        """Set a field of a map: 0 is the global one, then the inputs, then the outputs."""
        self.maps[place] = [pair for pair in self.maps[place] if pair[0] != key] + [(key, value)]
        return self

    def add(self, place: int, key: bytes, value: bytes) -> "Fields":
        """The same, beside one that is there."""
        self.maps[place].append((key, value))
        return self

    def drop(self, place: int, kind: int) -> "Fields":
        """Remove all fields of a type."""
        self.maps[place] = [pair for pair in self.maps[place] if pair[0][0] != kind]
        return self

    def of(self, place: int, kind: int) -> bytes:
        """The value of a field."""
        return next(value for key, value in self.maps[place] if key[0] == kind)

    def raw(self) -> bytes:
        """Its bytes."""
        return b"psbt\xff" + b"".join(
            b"".join(with_size(key) + with_size(value) for key, value in pairs) + b"\0" for pairs in self.maps
        )


def with_size(content: bytes) -> bytes:
    """Bytes behind their length."""
    count = len(content)
    return (bytes((count,)) if count < 0xFD else b"\xfd" + count.to_bytes(2, "little")) + content


def _size(raw: bytes, at: int) -> tuple[int, int]:
    width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(raw[at], 0)
    return (int.from_bytes(raw[at + 1 : at + 1 + width], "little") if width else raw[at]), at + 1 + width
