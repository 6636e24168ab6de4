"""Amounts for people: exact, in human units and in the smallest one, never rounded and never a float. Pure.

What a token says of itself, its symbol and its decimals, is hearsay: anybody can write a token that calls itself ETH.
So a symbol is always a quotation, and the amount that counts stands beside it.
"""

import re
from typing import Final, Protocol

from words.texts.chains import COINS, Coin, native_coin
from words.texts.plain import ELLIPSIS, clip

# A number of a document that is written as a string.
_WRITTEN: Final = re.compile(r"[0-9]{1,78}\Z|0x[0-9a-fA-F]{1,64}\Z")
# 2^256 has 78 digits; what is much longer is no amount.
_AMOUNT: Final = re.compile(r"[0-9]{1,100}\Z")
# Above this a token's decimals are nonsense (2^256 has no more digits), and zeros without end would hide the amount.
_MOST_DECIMALS: Final = 77
_SYMBOL_CHARACTERS: Final = 24
UNLIMITED: Final = 2**128
# In a list: more digits before the point than these are counted; of those behind it so many stay.
_MOST_WHOLE: Final = 15
_SHOWN_BEHIND: Final = 6


class Token(Protocol):
    """A token's metadata, by its own word."""

    @property
    def symbol(self) -> str | None: ...
    @property
    def decimals(self) -> int | None: ...


def whole(text: object) -> int | None:
    """The number of smallest units that a decimal string of the API says; None if it says none."""
    return int(text) if isinstance(text, str) and _AMOUNT.match(text) else None


def parse_number(value: object) -> int | None:
    """The number that a document holds, as the service reads it: a JSON number, or a string, decimal or in 0x hex."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    if isinstance(value, str) and _WRITTEN.match(value):
        return int(value, 16 if value.startswith("0x") else 10)
    return None


def human(amount: int, decimals: int) -> str:
    """An amount of smallest units in units of ten to the `decimals`: thousands separated, all digits, no more."""
    if not decimals:
        return f"{amount:,}"
    digits = str(amount).rjust(decimals + 1, "0")
    fraction = digits[-decimals:].rstrip("0")
    return f"{int(digits[:-decimals]):,}" + (f".{fraction}" if fraction else "")


def short_amount(shown: str) -> str:
    """The same amount for a list, which has no room for all of it: what was left out is said, and never its size.

    All digits before the point stay, unless there are too many to compare; then their number is said. Of those behind
    it six stay, or so many that the first which is not 0 is among them, and an ellipsis for the others.
    """
    before, _, behind = shown.partition(".")
    digits = before.replace(",", "")
    if len(digits) > _MOST_WHOLE:
        return f"{','.join(before.split(',')[:2])}{ELLIPSIS}({len(digits)} digits)"
    kept = max(_SHOWN_BEHIND, len(behind) - len(behind.lstrip("0")) + 1)
    if len(behind) <= kept + 1:
        return shown
    return f"{before}.{behind[:kept]}{ELLIPSIS}"


def coins(text: object, coin: Coin) -> str:
    """An amount of a chain's own coin: `1.5 ETH (1,500,000,000,000,000,000 wei)`."""
    amount = whole(text)
    if amount is None:
        return bad_amount(text)
    return f"{in_coins(amount, coin)} ({amount:,} {coin.smallest})"


def in_coins(amount: int, coin: Coin) -> str:
    """The same without the smallest unit; one coin without a name of its own is one coin."""
    shown = human(amount, coin.decimals)
    symbol = f"coin{coin.symbol[5:]}" if shown == "1" and coin.symbol.startswith("coins") else coin.symbol
    return f"{shown} {symbol}"


def tokens(text: object, token: Token | None) -> str:
    """An amount of a token: with its decimals as it tells them, else raw."""
    amount = whole(text)
    if amount is None:
        return bad_amount(text)
    decimals = told_decimals(token)
    if decimals is None:
        return f"{amount:,} raw units (decimals unknown)"
    return f"{human(amount, decimals)} ({amount:,} raw units)"


def amount_of(text: object, asset: str, chain_id: int | None, token: Token | None) -> str:
    """An amount of an asset as the API names it, coin or token."""
    coin = native_coin(asset, chain_id)
    return coins(text, coin) if coin else tokens(text, token)


def told_decimals(token: Token | None) -> int | None:
    """The decimals that a token tells; None where it tells none, or nonsense."""
    decimals = token.decimals if token else None
    return decimals if decimals is not None and 0 <= decimals <= _MOST_DECIMALS else None


def self_called(token: Token | None) -> str:
    """Quote the name that a token gives itself; empty where it gives none.

    Letters that are not plain are written out by their numbers: a Cyrillic letter would look like the Latin one.
    """
    if token is None or not token.symbol:
        return ""
    symbol = quote("".join(map(_spell, clip(token.symbol, _SYMBOL_CHARACTERS))), 10 * _SYMBOL_CHARACTERS)
    own = token.symbol.strip().upper() in COINS
    return f"calls itself {symbol}" + (", but is a token, not the coin of that name" if own else "")


def quote(text: str, most: int = 64) -> str:
    """Somebody else's words between quotes that they cannot leave: one line, no runs of blanks, clipped."""
    return '"' + clip(re.sub(r"\s+", " ", text), most).replace('"', "'") + '"'


def bad_amount(text: object) -> str:
    """An amount that is none."""
    return f"an amount that is not a number ({quote(str(text), 24)})"


def _spell(letter: str) -> str:
    return letter if letter.isascii() or letter == ELLIPSIS else f"<U+{ord(letter):04X}>"
