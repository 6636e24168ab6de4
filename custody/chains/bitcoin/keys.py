"""Keys below one root (BIP-32, BIP-44, 49, 84, 86)."""

import hmac
from typing import Final

import coincurve

from custody.chains import base58
from custody.chains.bitcoin.hashes import hash160, hash256
from custody.chains.bitcoin.types import Account, WalletScope

_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HARDENED: Final = 2**31


class Root:
    """A private key with its chain code. Nothing of it is shown."""

    __slots__ = ("chain_code", "key")

    def __init__(self, key: coincurve.PrivateKey, chain_code: bytes) -> None:
        self.key = key
        self.chain_code = chain_code

    def __repr__(self) -> str:
        return "Root()"


def root_of(seed: bytes) -> Root:
    """The root of a seed of 32 bytes; ValueError of one that gives none, which nobody will ever see."""
    if len(seed) != 32:
        raise ValueError("a seed has 32 bytes")
    made = hmac.digest(b"Bitcoin seed", seed, "sha512")
    return Root(_private(int.from_bytes(made[:32])), made[32:])


def fingerprint(root: Root) -> bytes:
    """Name a root as the hints in a PSBT do: 4 bytes."""
    return hash160(root.key.public_key.format())[:4]


def account_of(root: Root, account_path: tuple[int, int, int]) -> Account:
    """The public half of an account key: purpose, coin and account, each hardened."""
    account = _account(root, account_path)
    return Account(account.key.public_key.format(), account.chain_code)


def extended_key(account: Account, scope: WalletScope) -> str:
    """An account key in the spelling of wallets (BIP-32).

    The fingerprint of its parent is written as 0: nobody checks it, and to tell it the root would have to be opened.
    """
    version = b"\x04\x35\x87\xcf" if scope.network.coin else b"\x04\x88\xb2\x1e"
    raw = (
        version + b"\x03" + bytes(4) + (scope.account + _HARDENED).to_bytes(4) + account.chain_code + account.public_key
    )
    return base58.encode(raw + hash256(raw)[:4])


def private_key(root: Root, account_path: tuple[int, int, int], branch: int, index: int) -> coincurve.PrivateKey:
    """The private key of one address of an account."""
    return _below(_below(_account(root, account_path), branch), index).key


def child(account: Account, branch: int, index: int) -> bytes:
    """The public key of one address of an account, compressed; no private key is needed for it."""
    return public_below(public_below(account, branch), index).public_key


def public_below(parent: Account, number: int) -> Account:
    """The public half of the key of this number, which is not hardened."""
    made = hmac.digest(parent.chain_code, parent.public_key + number.to_bytes(4), "sha512")
    # An offset beyond the order, or the point at infinity: coincurve refuses both, once in 2^127.
    return Account(coincurve.PublicKey(parent.public_key).add(made[:32]).format(), made[32:])


def _account(root: Root, account_path: tuple[int, int, int]) -> Root:
    for number in account_path:
        root = _below(root, number + _HARDENED)
    return root


def _below(parent: Root, number: int) -> Root:
    hardened = number >= _HARDENED
    begins = b"\x00" + parent.key.secret if hardened else parent.key.public_key.format()
    made = hmac.digest(parent.chain_code, begins + number.to_bytes(4), "sha512")
    offset = int.from_bytes(made[:32])
    if offset >= _ORDER:
        raise ValueError("this number has no key")
    return Root(_private((offset + int.from_bytes(parent.key.secret)) % _ORDER), made[32:])


def _private(number: int) -> coincurve.PrivateKey:
    if not 0 < number < _ORDER:
        raise ValueError("this number is no key")
    return coincurve.PrivateKey(number.to_bytes(32))
