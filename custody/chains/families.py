"""The chain families that this process knows, as its `__main__` hands them in; `built_in.py` lists ours.

While nothing is handed in, nothing is known, and every address, asset and chain is refused. The rest of a family is
registered where it is used, so that no process imports more than it may: keys in `signer/wallets/`, kinds of orders in
`signer/orders/`, nodes in `custody/chains/nodes.py`.
"""

from collections.abc import Collection, Iterable
from typing import Final

from custody.chains.family import Chain, Family, SigningFamily, WalletFamily

_KNOWN: Final[dict[str, Family]] = {}


def hand_in(families: Iterable[Family]) -> None:
    """Have these known from now on, and no others; before anything is read."""
    _KNOWN.clear()
    _KNOWN.update((family.name, family) for family in families)


def all_families() -> Collection[Family]:
    """All of them, in their order."""
    return _KNOWN.values()


def wallets() -> dict[str, WalletFamily]:
    """Those that every agent has a wallet of from its beginning, by name."""
    return {one.name: one for one in all_families() if isinstance(one, WalletFamily)}


def of_name(name: str) -> Family:
    """The family of a name."""
    return _KNOWN[name]


def of_asset(asset: str | None) -> Family | None:
    """The family that an asset is of, or None."""
    return None if asset is None else _KNOWN.get(asset.partition(":")[0])


def of_kind(order_kind: str) -> SigningFamily:
    """The family whose keys sign a kind of order."""
    return next(one for one in all_families() if isinstance(one, SigningFamily) and order_kind in one.order_kinds)


def of_address(text: str) -> Family | None:
    """The family whose addresses look like this, or None."""
    return next((family for family in all_families() if family.is_address(text)), None)


def caip2(chain: Chain) -> str:
    """The CAIP-2 name of a chain, such as `eip155:1`."""
    return wallets()[chain.family].caip2(chain)
