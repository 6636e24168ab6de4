"""Assets that are part of another: the coin of one EVM chain among the coins of all, rent among the lamports.

What an order moves counts under both names, so that a limit may be on either. The ledger keeps each amount once, under
the part, and every reader counts it under both: no row is written twice, and the two sums can't differ.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from custody.chains.evm.family import EVM_NATIVE, coin_chain
from custody.chains.solana.family import SOLANA_NATIVE

# What Solana's new token accounts cost, in lamports. No rule names it as its asset: `maxRentPerDay` limits it.
SOLANA_RENT: Final = "solana:rent"


def names(asset: str) -> tuple[str, ...]:
    """An asset, and the one that it is part of."""
    if coin_chain(asset) is not None:
        return asset, EVM_NATIVE
    return (asset, SOLANA_NATIVE) if asset == SOLANA_RENT else (asset,)


def kept(amounts: Mapping[str, int]) -> dict[str, int]:
    """Amounts as the ledger keeps them: of an asset only what is in none of its parts."""
    rest = dict(amounts)
    for part, amount in amounts.items():
        for whole in names(part)[1:]:
            rest[whole] = rest.get(whole, 0) - amount
    return {asset: amount for asset, amount in rest.items() if amount > 0}


def counted(spend: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    """Spend of a day and of a week as the ledger keeps it, under every name under which it counts."""
    found: dict[str, tuple[int, int]] = {}
    for asset, day, week in spend:
        for name in names(asset):
            before = found.get(name, (0, 0))
            found[name] = before[0] + day, before[1] + week
    return found
