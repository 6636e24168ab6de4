"""The chain families of this service, which every process is handed by its `__main__`. A new family: a line here."""

from collections.abc import Mapping
from typing import Final

from custody.chains.bitcoin.family import Bitcoin
from custody.chains.evm.family import Evm
from custody.chains.family import Family, WalletFamily
from custody.chains.solana.family import Solana

LISTED: Final[tuple[Family, ...]] = (Evm(), Solana(), Bitcoin())
FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in LISTED}
# Those that every agent has a wallet of from its beginning.
WALLETS: Final[Mapping[str, WalletFamily]] = {one.name: one for one in LISTED if isinstance(one, WalletFamily)}
# The chains that are known without a chains file, as each family lists its own.
CHAINS: Final = tuple(chain for family in WALLETS.values() for chain in family.chains)
