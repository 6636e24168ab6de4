"""Addresses are spelled with their checksums, and named by the lists they stand on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.address import checksum
from tests.console.orders import THEM, lines_of, order, pays
from words.orders.addresses import checksum_address
from words.orders.details import details
from words.orders.lists import names_on_lists
from words.orders.order import Known
from words.orders.words import summary
from words.shapes import PolicyRule


def test_an_address_is_shown_with_its_checksum_whatever_its_source() -> None:
    lower = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"

    lines = lines_of(order(pays(to=lower), to_address=lower.upper().replace("0X", "0x"), value="1500000000000000000"))

    assert "  0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" in lines
    assert summary(order(pays(to=lower)), Known()) == "Sends 1.5 ETH to 0x5aAeb…1BeAed"
    assert "to           0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" in [
        one.text for one in details(order(to_address=lower), Known())
    ]


@given(st.binary(min_size=20, max_size=20))
def test_a_checksum_is_the_service_s(address: bytes) -> None:
    lower = f"0x{address.hex()}"

    assert checksum_address(lower) == checksum_address(lower.upper()) == checksum(lower)


@pytest.mark.parametrize(
    "text",
    [
        "So11111111111111111111111111111111111111112",
        "bc1qexample",
        "",
        "0x",
        "0x" + "g" * 40,
        "0x" + "a" * 41,
        "a" * 42,
    ],
)
def test_text_that_is_no_evm_address_is_left_unchanged(text: str) -> None:
    assert checksum_address(text) == text


@pytest.mark.parametrize("modes", [("blacklist", "whitelist"), ("whitelist", "blacklist")])
def test_an_address_on_one_blocklist_is_shown_as_blocked(modes: tuple[str, str]) -> None:
    rules = [PolicyRule("approved-addresses", enabled=True, config={"mode": one, "addresses": [THEM]}) for one in modes]

    assert names_on_lists(rules) == {THEM: "on the BLOCKED list of this agent"}
