"""Addresses: the vectors of BIP-173 and BIP-350, base58check, and what only looks like an address."""

import random

import pytest
from embit.networks import NETWORKS as THEIR_NETWORKS
from embit.script import Script

from custody.chains.bitcoin.addresses import address_of, script_at
from custody.chains.bitcoin.networks import NETWORKS
from tests.fixtures.bitcoin import THEIRS

MAINNET, TESTNET, REGTEST = NETWORKS["mainnet"], NETWORKS["testnet"], NETWORKS["regtest"]
VALID = [
    ("mainnet", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "0014751e76e8199196d454941c45d1b3a323f1433bd6"),
    (
        "testnet",
        "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
        "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
    ),
    (
        "testnet",
        "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy",
        "0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
    ),
    (
        "testnet",
        "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
        "5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
    ),
    (
        "mainnet",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ),
    # Of versions and lengths that have no meaning yet, and the anchor.
    (
        "mainnet",
        "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
        "5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6",
    ),
    ("mainnet", "BC1SW50QGDZ25J", "6002751e"),
    ("mainnet", "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", "5210751e76e8199196d454941c45d1b3a323"),
    ("mainnet", "bc1pfeessrawgf", "51024e73"),
]
# BIP-350: another prefix, bech32 in place of bech32m and the reverse, a character, a version, a length, padding.
INVALID = [
    "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
    "tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf",
    "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
    "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47",
    "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
    "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
    "bc1pw5dgrnzv",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
    "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j",
    "bc1gmk9yu",
    # Mixed case, nothing at all, spaces, and a K that is the sign of Kelvin.
    "bc1QW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "",
    " bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4\n",
    "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7\N{KELVIN SIGN}V8F3T4",
    # Base58 with another last letter, with a letter it has not, and of a private key.
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3",
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNV0O",
    "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
]


@pytest.mark.parametrize(("network", "address", "script"), VALID, ids=[address for _, address, _ in VALID])
def test_a_published_address_has_its_script(network: str, address: str, script: str) -> None:
    raw = script_at(address, NETWORKS[network])

    assert raw is not None
    assert raw.hex() == script
    assert address_of(raw, NETWORKS[network]) == address.lower()


@pytest.mark.parametrize("place", range(len(INVALID)))
def test_a_text_that_is_no_address_has_no_script(place: int) -> None:
    assert [script_at(INVALID[place], network) for network in NETWORKS.values()] == [None] * len(NETWORKS)


def test_an_address_is_of_its_network() -> None:
    for address in ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"):
        assert script_at(address, MAINNET) is not None
        assert script_at(address, TESTNET) is None
        assert script_at(address, REGTEST) is None


def test_every_kind_is_spelled_as_embit_spells_it() -> None:
    chosen = random.Random(173)
    for _ in range(50):
        short, long = chosen.randbytes(20), chosen.randbytes(32)
        for script in (
            b"\x76\xa9\x14" + short + b"\x88\xac",
            b"\xa9\x14" + short + b"\x87",
            b"\x00\x14" + short,
            b"\x00\x20" + long,
            b"\x51\x20" + long,
        ):
            for name, network in NETWORKS.items():
                address = Script(script).address(THEIR_NETWORKS[THEIRS[name]])
                assert address_of(script, network) == address
                assert script_at(address, network) == script


def test_one_other_character_makes_no_address() -> None:
    address = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
    for place in range(len(address)):
        for other in "qpzry9x8gf2tvdw0s3jn54khce6mua7l":
            if other != address[place]:
                assert script_at(address[:place] + other + address[place + 1 :], MAINNET) is None
