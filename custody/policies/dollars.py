"""The worth of an order in millionths of a dollar, asset by asset, each rounded up.

A price is a decimal, never a float, of one whole unit under the asset's whole name: anybody can give a contract any
symbol. Pure.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from custody.chains.types import Subject
from custody.chains.units import Units
from custody.policies.assets import unit_of
from custody.policies.moved import priced_moves

# The prices that count at a moment.
type PricesAt = Callable[[datetime], Mapping[str, Decimal]]
# Of amounts with at most 80 digits and prices with at most 30 nothing is rounded but what is left of a millionth.
_EXACT: Final = Context(prec=120)


def worth_of(subject: Subject, prices: Mapping[str, Decimal], units: Units) -> dict[str, int]:
    """Compute what each asset that an order moves is worth; one without a price, or without decimals, is not there."""
    found: dict[str, int] = {}
    for name, amount in priced_moves(subject).items() if prices else ():
        unit = unit_of(name, units, subject.chain_id)
        if name in prices and unit is not None:
            exact = _EXACT.multiply(prices[name], Decimal(amount).scaleb(6 - unit.decimals, context=_EXACT))
            found[name] = int(exact.to_integral_value(rounding=ROUND_CEILING, context=_EXACT))
    return found
