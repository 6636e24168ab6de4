"""Spending of an agent on each of the last days, and a line that draws it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from words.shapes import Transaction
from words.texts.amounts import whole
from words.texts.moments import moment

DAYS: Final = 14
# What the dashboard counts as spent.
COUNTED: Final = ("signed", "broadcast", "confirmed")
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NOTHING, _UNKNOWN = "·", "?"


@dataclass(frozen=True)
class Day:
    """One day in UTC; `spent` is None where not all of its transactions were read."""

    date: date
    spent: int | None


@dataclass(frozen=True)
class Spending:
    """The last days, oldest first; `left_out` older transactions were not read."""

    days: list[Day]
    left_out: int = 0


def spending(
    found: Sequence[Transaction], today: date, *, known_from: date | None = None, left_out: int = 0
) -> Spending:
    """Native EVM value by the day on which it was asked for, in UTC, as the dashboard counts it.

    `known_from` is the first day of which everything was read, where that is not all of them.
    """
    spent = {today - timedelta(days=back): 0 for back in range(DAYS - 1, -1, -1)}
    for transaction in found:
        at = moment(transaction.created_at)
        day = at.date() if at else None
        if day in spent and transaction.status in COUNTED:
            spent[day] += whole(transaction.value) or 0
    days = [Day(day, amount if known_from is None or day >= known_from else None) for day, amount in spent.items()]
    return Spending(days, left_out)


def first_day(today: date) -> date:
    """The oldest of the last days."""
    return today - timedelta(days=DAYS - 1)


def sparkline(days: Sequence[Day]) -> str:
    """One letter for each day: a block as high as its share of the highest day, a dot for nothing, ? for unknown."""
    most = max((day.spent or 0 for day in days), default=0)
    return "".join(_letter(day.spent, most) for day in days)


def _letter(spent: int | None, most: int) -> str:
    if spent is None:
        return _UNKNOWN
    # Integers to the end: a float would show 2^256 wei as it likes.
    return _BLOCKS[max(0, -(-spent * len(_BLOCKS) // most) - 1)] if spent else _NOTHING
