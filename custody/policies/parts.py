"""Assets that are part of another: the coin of one EVM chain among the coins of all, rent among the lamports.

What an order moves counts under both names, so that a limit may be on either. The ledger keeps each amount once, under
the part, and every reader counts it under both: no row is written twice, and the two sums can't differ.
"""

from collections.abc import Iterable, Mapping

from custody.chains import families


def names(asset: str) -> tuple[str, ...]:
    """An asset, and the one that it is part of."""
    family = families.of_asset(asset)
    whole = family.whole(asset) if family is not None else None
    return (asset,) if whole is None else (asset, whole)


def subtract_parts(amounts: Mapping[str, int]) -> dict[str, int]:
    """Amounts as the ledger keeps them: of an asset only what is in none of its parts."""
    rest = dict(amounts)
    for part, amount in amounts.items():
        for whole in names(part)[1:]:
            rest[whole] = rest.get(whole, 0) - amount
    return {asset: amount for asset, amount in rest.items() if amount > 0}


def add_parts(spend: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    """Spend of a day and of a week as the ledger keeps it, under every name under which it counts."""
    found: dict[str, tuple[int, int]] = {}
    for asset, day, week in spend:
        for name in names(asset):
            before = found.get(name, (0, 0))
            found[name] = before[0] + day, before[1] + week
    return found
