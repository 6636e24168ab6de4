"""The chain families that are known here.

The rest of a family is registered where it is used, so that no process imports more than it may: keys in
`signer/wallets/`, kinds of orders in `signer/orders/`, nodes in `custody/chains/nodes.py`.
"""

from collections.abc import Mapping
from typing import Final

from custody.chains.bitcoin.family import Bitcoin
from custody.chains.evm.family import Evm
from custody.chains.family import Chain, Family, SigningFamily, WalletFamily
from custody.chains.solana.family import Solana

_LISTED: Final[tuple[Family, ...]] = (Evm(), Solana(), Bitcoin())
FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in _LISTED}
# Those that every agent has a wallet of from its beginning.
WALLETS: Final[Mapping[str, WalletFamily]] = {one.name: one for one in _LISTED if isinstance(one, WalletFamily)}
# The kinds of orders, as rows, answers and filters name them.
KINDS: Final = tuple(kind for family in _LISTED for kind in family.order_kinds)
SIGNING: Final[Mapping[str, SigningFamily]] = {one.name: one for one in _LISTED if isinstance(one, SigningFamily)}
_BY_KIND: Final = {kind: family for family in SIGNING.values() for kind in family.order_kinds}


def of_kind(order_kind: str) -> SigningFamily:
    """The family whose keys sign a kind of order."""
    return _BY_KIND[order_kind]


def of_address(text: str) -> Family | None:
    """The family whose addresses look like this, or None."""
    return next((family for family in FAMILIES.values() if family.is_address(text)), None)


def caip2(chain: Chain) -> str:
    """The CAIP-2 name of a chain, such as `eip155:1`."""
    return WALLETS[chain.family].caip2(chain)
