"""Every form in which wallets show a private key, as other libraries write them, and nothing else."""

import json
from collections.abc import Callable

import coincurve
import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature

from custody.imports.plaintext import FORMS, NoKey, secret_of
from tests.fixtures.each import each

SEED = bytes(range(7, 39))
PAIR = bytes(Keypair.from_seed(SEED))
EVM = bytes(range(1, 33))


def base58(raw: bytes) -> str:
    """As the library writes keys and signatures."""
    return str(Pubkey.from_bytes(raw) if len(raw) == 32 else Signature.from_bytes(raw))


_EVM_FORMS: dict[str, Callable[[bytes], str]] = {
    "MetaMask": lambda key: key.hex(),
    "ethers": lambda key: "0x" + key.hex(),
    "eth-account": lambda key: Account.from_key(key).key.to_0x_hex(),
    "coincurve": lambda key: coincurve.PrivateKey(key).to_hex(),
    "upper case": lambda key: key.hex().upper(),
    "upper case with 0x": lambda key: "0x" + key.hex().upper(),
    "all of it in upper case": lambda key: ("0x" + key.hex()).upper(),
    "numbers": lambda key: json.dumps(list(key)),
    "numbers in lines": lambda key: json.dumps(list(key), indent=4),
}
# Of 32 bytes and of 64.
_SOLANA_FORMS: dict[str, Callable[[bytes], str]] = {
    "solana-keygen": lambda raw: json.dumps(list(raw), separators=(",", ":")),
    "numbers in lines": lambda raw: json.dumps(list(raw), indent=8),
    "base58": base58,
    "hex": lambda raw: raw.hex(),
    "hex with 0x": lambda raw: "0x" + raw.hex(),
    "upper case": lambda raw: raw.hex().upper(),
}
AROUND = ["{}", "{}\n", "{}\r\n", " {}\t", "\n\n{}\n"]


@each("around", AROUND)
@each("form", _EVM_FORMS)
def test_an_evm_key_is_read_as_wallets_write_it(form: str, around: str) -> None:
    assert secret_of("evm", around.format(_EVM_FORMS[form](EVM)).encode()) == EVM


@each("around", AROUND)
@each("raw", [SEED, PAIR], ids=["seed", "pair"])
@each("form", _SOLANA_FORMS)
def test_a_solana_key_is_read_as_wallets_write_it(form: str, raw: bytes, around: str) -> None:
    assert secret_of("solana", around.format(_SOLANA_FORMS[form](raw)).encode()) == SEED


def test_the_keypair_text_of_the_library_is_read() -> None:
    assert secret_of("solana", str(Keypair.from_seed(SEED)).encode()) == SEED
    assert secret_of("solana", Keypair.from_seed(SEED).to_json().encode()) == SEED


@given(raw=st.binary(min_size=32, max_size=32), form=st.sampled_from(sorted(_SOLANA_FORMS)), pair=st.booleans())
def test_every_seed_is_read_in_every_form(raw: bytes, form: str, pair: bool) -> None:
    """Leading zeros, and keys all of whose hex digits base58 has too, included."""
    whole = bytes(Keypair.from_seed(raw)) if pair else raw
    assert secret_of("solana", _SOLANA_FORMS[form](whole).encode()) == raw


@each("raw", [bytes(32), b"\x11" * 32, bytes(31) + b"\x01", b"\xff" * 32])
@each("form", _SOLANA_FORMS)
def test_no_form_is_taken_for_another(form: str, raw: bytes) -> None:
    assert secret_of("solana", _SOLANA_FORMS[form](raw).encode()) == raw


@each("form", _SOLANA_FORMS)
@each("at", [32, 63])
def test_the_public_half_must_be_the_seeds_own(form: str, at: int) -> None:
    other = bytearray(PAIR)
    other[at] ^= 1
    with pytest.raises(NoKey):
        secret_of("solana", _SOLANA_FORMS[form](bytes(other)).encode())


NO_KEYS = {
    "nothing": b"",
    "blanks": b" \n",
    "empty array": b"[]",
    "31 numbers": json.dumps(list(SEED[:31])).encode(),
    "33 numbers": json.dumps([*SEED, 1]).encode(),
    "63 numbers": json.dumps(list(PAIR[:63])).encode(),
    "65 numbers": json.dumps([*PAIR, 1]).encode(),
    "256": json.dumps([256, *PAIR[1:]]).encode(),
    "below zero": json.dumps([-1, *PAIR[1:]]).encode(),
    "true": json.dumps([True, *PAIR[1:]]).encode(),
    "floats": json.dumps([float(one) for one in PAIR]).encode(),
    "texts": json.dumps([str(one) for one in PAIR]).encode(),
    "two arrays": (json.dumps(list(PAIR)) * 2).encode(),
    "deep": b"[" * 2_000,
    "no UTF-8": b"[\xff]",
    "63 digits": b"1" * 63,
    "65 digits": b"1" * 65,
    "127 digits": b"a" * 127,
    "0x alone": b"0x",
    "0x twice": b"0x0x" + SEED.hex().encode(),
    "a blank within": SEED.hex()[:32].encode() + b" " + SEED.hex()[32:].encode(),
    "raw bytes": SEED,
    "base64": b"BwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSY=",
    "letters that base58 lacks": base58(PAIR)[:-4].encode() + b"0OIl",
    "a phrase": b"legal winner thank year wave sausage worth useful legal winner thank yellow",
    "far too long": json.dumps(list(PAIR)).encode() + b" " * 4_000,
}


@each("chain", FORMS)
@each("name", NO_KEYS)
def test_another_text_is_no_key_and_is_not_repeated(name: str, chain: str) -> None:
    with pytest.raises(NoKey) as refused:
        secret_of(chain, NO_KEYS[name])

    assert str(refused.value) == f"what is in it is no private key of {chain}: it must be {FORMS[chain]}"
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


@each("form", ["base58", "hex of a pair"])
def test_a_solana_key_is_none_of_evm(form: str) -> None:
    with pytest.raises(NoKey):
        secret_of("evm", base58(PAIR).encode() if form == "base58" else PAIR.hex().encode())
