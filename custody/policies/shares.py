"""The worth of an order's parts, of a batch call by call. Pure."""

from collections.abc import Mapping, Sequence

from custody.chains.types import Subject
from custody.policies.moved import priced_moves


def shares(worth: Mapping[str, int], parts: Sequence[Subject]) -> list[dict[str, int]]:
    """Divide what an order is worth among its parts: rounded up once for all, and not once for each."""
    whole: dict[str, int] = {}
    found: list[dict[str, int]] = []
    amounts = [priced_moves(part) for part in parts]
    totals = {name: sum(part.get(name, 0) for part in amounts) for name in worth}
    for part in amounts:
        ends = {name: whole.get(name, 0) + amount for name, amount in part.items()}
        found.append(
            {
                name: _reach(worth, totals, name, end) - _reach(worth, totals, name, whole.get(name, 0))
                for name, end in ends.items()
                if name in worth
            }
        )
        whole |= ends
    return found


def _reach(worth: Mapping[str, int], totals: Mapping[str, int], name: str, amount: int) -> int:
    return -(-worth[name] * amount // totals[name]) if totals[name] else 0
