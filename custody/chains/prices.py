"""The operator's list of prices in USD, and what an amount is worth by it.

Amounts and prices are decimals, never floats. A price under the whole name of an asset, such as `evm:1:0xa0b8...` or
`solana:<mint>`, counts before one under its symbol: anybody can give a contract any symbol. Limits know whole names
alone.
"""

import functools
import tomllib
from collections.abc import Iterable, Mapping
from decimal import ROUND_DOWN, Context, Decimal
from pathlib import Path
from typing import Final

from custody.kit.environment import BadSetting

VARIABLE: Final = "SERVICE_PRICES_FILE"
MAX_NAME = 128
# Bytes of what an endpoint issues, and characters of its signature, which stands in a header.
MAX_DOCUMENT: Final = 256 * 1024
MAX_SIGNATURE: Final = 128
SIGNATURE_HEADER: Final = "x-prices-signature"
_CENT = Decimal("0.01")
_MICRO = Decimal("0.000001")
# Amounts have up to 78 digits, prices up to 30: nothing is rounded before the cents are cut.
_EXACT = Context(prec=120)
_MOST = Decimal(10) ** 18
_LEAST_EXPONENT = -36


class Prices:
    """USD for one whole unit, by symbol or by the whole name of an asset."""

    def __init__(self, prices: Mapping[str, Decimal] | None = None) -> None:
        self._prices = {name.lower(): price for name, price in (prices or {}).items()}
        # As effects spell names, which no symbol looks like but `BITCOIN`, in other letters.
        self.by_whole_name = {_spell(name): price for name, price in (prices or {}).items()}

    def find(self, asset: str, symbol: str | None) -> Decimal | None:
        """The price of an asset, or None."""
        found = self._prices.get(asset.lower())
        return found if found is not None or symbol is None else self._prices.get(symbol.lower())


def worth(price: Decimal | None, amount: int | None, decimals: int | None) -> Decimal | None:
    """Compute what an amount of the smallest unit is worth, exactly; None where something is unknown."""
    if price is None or amount is None or decimals is None:
        return None
    return _EXACT.multiply(price, Decimal(amount).scaleb(-decimals, context=_EXACT))


def total(worths: Iterable[Decimal]) -> Decimal:
    """The exact sum."""
    return functools.reduce(_EXACT.add, worths, Decimal(0))


def text(usd: Decimal) -> str:
    """Dollars and cents, cut and never rounded up."""
    return f"{usd.quantize(_CENT, rounding=ROUND_DOWN, context=_EXACT):f}"


def fine_text(usd: Decimal) -> str:
    """The same with six decimals: a network fee is often less than a cent."""
    return f"{usd.quantize(_MICRO, rounding=ROUND_DOWN, context=_EXACT):f}"


def load(environment: Mapping[str, str]) -> Prices:
    """Read the file; a bad one raises BadSetting with what is wrong in it. Without a file nothing has a price.

    TOML, one line for each price, which stands in quotes so that it stays exact: `ETH = "3120.55"`.
    """
    path = environment.get(VARIABLE, "").strip()
    if not path:
        return Prices()
    try:
        lines = tomllib.loads(Path(path).expanduser().read_text(), parse_float=Decimal)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise BadSetting(VARIABLE, str(problem)) from None
    return Prices({name: _price(name, value) for name, value in lines.items()})


def _spell(name: str) -> str:
    # Effects spell EVM addresses in lower case; of other chains the case of letters says which asset it is.
    return name.lower() if name.startswith("evm:") else name


def _price(name: str, value: object) -> Decimal:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | Decimal) or len(name) > MAX_NAME:
            raise ValueError
        return read_price(value)
    except (ValueError, ArithmeticError):
        raise BadSetting(VARIABLE, f'{name}: a price is a number of dollars, such as "3120.55"') from None


def read_price(value: str | int | Decimal) -> Decimal:
    """Read a price that is multiplied exactly; ValueError or ArithmeticError for one that is beyond all measure."""
    price = Decimal(value)
    if not price.is_finite() or not 0 <= price <= _MOST or len(price.as_tuple().digits) > 30:
        raise ValueError
    # What is smaller still could come to nothing where it is multiplied.
    if int(price.as_tuple().exponent) < _LEAST_EXPONENT:
        raise ValueError
    return price
