"""A token's symbol is its contract's claim: short printable ASCII, or unknown."""

from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from api.areas.funds.erc20 import symbol_of
from tests.fixtures.each import each

CYRILLIC_ES = "\u0421"


@each(
    ("answer", "symbol"),
    [
        (encode(["string"], ["USDC"]), "USDC"),
        (b"MKR".ljust(32, b"\0"), "MKR"),
        (encode(["string"], ["x" * 32]), "x" * 32),
        (encode(["string"], ["x" * 33]), None),
        (encode(["string"], [""]), None),
        (encode(["string"], ["USD" + CYRILLIC_ES]), None),
        (("USD" + CYRILLIC_ES).encode().ljust(32, b"\0"), None),
        (encode(["string"], ["USDC\u200b"]), None),
        (encode(["string"], ["\u202eCDSU"]), None),
        (encode(["string"], ["A\nB"]), None),
        (encode(["string"], [" USDC"]), None),
        (b"", None),
        (bytes(32), None),
        (b"\xff" * 96, None),
        (None, None),
    ],
)
def test_a_symbol_is_short_printable_ascii_or_unknown(answer: bytes | None, symbol: str | None) -> None:
    assert symbol_of(answer) == symbol


@given(st.binary(max_size=200))
def test_every_answer_is_read_or_unknown(answer: bytes) -> None:
    symbol = symbol_of(answer)

    assert symbol is None or (symbol.isascii() and symbol.isprintable() and 0 < len(symbol) <= 32)
