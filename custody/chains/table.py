"""The chains this deployment knows, as `chains_file.py` reads them.

Fee caps protect against a node that lies: whatever it suggests, no signature pays more than the table allows.
"""

from collections.abc import Mapping
from typing import Any

from custody.chains import families
from custody.chains.family import Chain
from custody.chains.units import Unit, Units
from custody.kit.errors import Invalid


class ChainTable:
    """Look chains up by id; an unknown id is the caller's mistake."""

    def __init__(
        self, chains: Mapping[int, Chain], active_id: int, bounds: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._chains = dict(chains)
        if active_id not in self._chains:
            raise ValueError(f"SERVICE_DEFAULT_CHAIN_ID {active_id} is not in the chains table")
        self.active = self._chains[active_id]
        self.units = _units(self._chains)
        # By the family, of one whose chains are in no table: what it allows, by the name of the network.
        self.bounds = bounds or {}

    def find(self, chain_id: int) -> Chain | None:
        """The chain, or None."""
        return self._chains.get(chain_id)

    @property
    def all(self) -> list[Chain]:
        """Every chain."""
        return list(self._chains.values())

    def all_of(self, family: str) -> list[Chain]:
        """Every chain of a family."""
        return [chain for chain in self._chains.values() if chain.family == family]


def _units(chains: Mapping[int, Chain]) -> Units:
    """Collect the units of the coins and tokens of these chains."""
    coins = {
        chain.id: Unit(chain.symbol, chain.decimals, families.of_name(chain.family).unit) for chain in chains.values()
    }
    tokens: dict[str, Unit] = {}
    wallets = families.wallets()
    for chain in chains.values():
        family = wallets[chain.family]
        for token in chain.tokens:
            try:
                asset = family.parse_asset(family.token_asset(chain.id, token.address))
            except Invalid:
                asset = None
            if asset is None:
                raise ValueError(
                    f"SERVICE_CHAINS_FILE: token {token.address} of chain {chain.id} is not a token address"
                )
            tokens[asset] = Unit(token.symbol, token.decimals)
    return Units(coins, tokens)
