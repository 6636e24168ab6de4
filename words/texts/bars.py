"""A limit as a line of blocks: what is spent, what an order would add, what is free. Pure; words stand beside it."""

from typing import Final

SPENT, ADDED, FREE = "█", "▒", "░"
CELLS: Final = 20


def bar(spent: int, limit: int, cells: int = CELLS, adds: int = 0) -> str:
    """So many blocks; whatever is more than nothing is seen, and more than the limit fills it."""
    if limit <= 0:
        return SPENT * cells
    full = min(cells, -(-spent * cells // limit))
    both = min(cells, max(-(-(spent + adds) * cells // limit), full + (adds > 0)))
    return SPENT * full + ADDED * (both - full) + FREE * (cells - both)


def percent(part: int, limit: int) -> str:
    """Return the share of a limit, rounded up: what does not fit is never 100%."""
    return f"{-(-part * 100 // limit):,}%" if limit > 0 else "all"
