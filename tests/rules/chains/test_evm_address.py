"""EVM addresses: EIP-55 vectors, and laws that hold for every address."""

import pytest
from coincurve import PrivateKey
from eth_account import Account
from eth_utils import keccak, to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.address import BadAddress, address_of, checksum, keccak256, parse_address

EIP55 = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]

addresses = st.binary(min_size=20, max_size=20)


@pytest.mark.parametrize("address", EIP55)
def test_the_standards_examples_pass_and_come_back_lower(address: str) -> None:
    assert parse_address(address) == address.lower()
    assert checksum(address) == address


@given(addresses)
def test_every_address_is_spelled_as_another_library_does(raw: bytes) -> None:
    assert checksum("0x" + raw.hex()) == to_checksum_address(raw)


@given(addresses)
def test_one_case_needs_no_checksum(raw: bytes) -> None:
    assert parse_address("0x" + raw.hex().upper()) == parse_address("0x" + raw.hex()) == "0x" + raw.hex()


@pytest.mark.parametrize("position", [3, 4, 41])
def test_a_letter_in_the_wrong_case_is_refused(position: int) -> None:
    good = EIP55[4]
    bad = good[:position] + good[position].swapcase() + good[position + 1 :]

    with pytest.raises(BadAddress, match="checksum"):
        parse_address(bad)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        EIP55[0][2:],
        EIP55[0] + "\n",
        EIP55[0] + "0",
        EIP55[0][:-1],
        "0X" + EIP55[0][2:],
        "0x" + "g" * 40,
        "0x" + "\u0661" * 40,
        " " + EIP55[0],
    ],
)
def test_an_address_without_forty_digits_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        parse_address(text)


@given(st.binary(min_size=32, max_size=32).filter(lambda key: 0 < int.from_bytes(key) < 2**255))
def test_a_public_key_has_the_address_another_library_gives(secret: bytes) -> None:
    public = PrivateKey(secret).public_key.format(compressed=False)

    assert address_of(public) == address_of(public[1:]) == Account.from_key(secret).address


@pytest.mark.parametrize("size", [0, 33, 63, 66])
def test_a_public_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        address_of(b"\x04" * size)


@given(st.binary(max_size=300))
def test_the_hash_is_ethereums(message: bytes) -> None:
    assert keccak256(message) == keccak(message)
