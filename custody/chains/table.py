"""The chains this deployment knows: built in, from SERVICE_CHAINS_FILE, and SERVICE_RPC_URL_<id>. Decisions 2.

Fee caps protect against a node that lies: whatever it suggests, no signature pays more than the table allows.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

GWEI = 10**9


class Chain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One chain. Fees in wei (EVM) or lamports (Solana); `max_fee_per_transaction` caps gas limit times price."""

    id: int
    family: Literal["evm", "solana"] = "evm"
    name: str
    symbol: str
    decimals: int = 18
    rpc_urls: tuple[str, ...] = ()
    confirmations: int = 12
    max_fee_per_gas: int = 500 * GWEI
    max_priority_fee_per_gas: int = 50 * GWEI
    max_fee_per_transaction: int = 10**17
    default_gas: int = 100_000
    default_max_fee_per_gas: int = 50 * GWEI
    default_priority_fee_per_gas: int = 1 * GWEI
    active: bool = False
    caip2_reference: str | None = None

    @property
    def caip2(self) -> str:
        """The CAIP-2 name, such as `eip155:1`."""
        return f"eip155:{self.id}" if self.family == "evm" else f"solana:{self.caip2_reference or self.id}"


def _solana(chain_id: int, name: str, reference: str) -> Chain:
    return Chain(
        id=chain_id, family="solana", name=name, symbol="SOL", decimals=9, confirmations=1,
        max_fee_per_transaction=10_000_000, caip2_reference=reference,
    )  # fmt: skip


BUILT_IN: tuple[Chain, ...] = (
    Chain(id=1, name="Ethereum", symbol="ETH"),
    Chain(id=10, name="OP Mainnet", symbol="ETH"),
    Chain(id=56, name="BNB Smart Chain", symbol="BNB"),
    Chain(id=137, name="Polygon", symbol="POL", max_fee_per_gas=5_000 * GWEI, max_priority_fee_per_gas=1_000 * GWEI),
    Chain(id=8453, name="Base", symbol="ETH"),
    Chain(id=42161, name="Arbitrum One", symbol="ETH", default_gas=1_000_000),
    Chain(id=11155111, name="Sepolia", symbol="ETH"),
    Chain(id=84532, name="Base Sepolia", symbol="ETH"),
    Chain(id=31337, name="Local chain", symbol="ETH", confirmations=1),
    _solana(101, "Solana", "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"),
    _solana(102, "Solana Devnet", "EtWTRABZaYq6iMfeYKouRu166VU2xqa1"),
)


class ChainTable:
    """Look chains up by id; an unknown id is the caller's mistake."""

    def __init__(self, chains: Mapping[int, Chain], active_id: int) -> None:
        self._chains = dict(chains)
        if active_id not in self._chains:
            raise ValueError(f"SERVICE_DEFAULT_CHAIN_ID {active_id} is not in the chains table")
        self.active = self._chains[active_id]

    def find(self, chain_id: int) -> Chain | None:
        """The chain, or None."""
        return self._chains.get(chain_id)

    def all_of(self, family: str) -> list[Chain]:
        """Every chain of a family."""
        return [chain for chain in self._chains.values() if chain.family == family]


def load(environment: Mapping[str, str]) -> ChainTable:
    """Build the table from the environment; a bad file or id raises ValueError with the variable's name."""
    chains = {chain.id: chain for chain in BUILT_IN}
    if path := environment.get("SERVICE_CHAINS_FILE"):
        chains |= _from_file(Path(path), chains)
    prefix = "SERVICE_RPC_URL_"
    for name, url in environment.items():
        if not name.startswith(prefix) or not url:
            continue
        reference = name.removeprefix(prefix)
        if not reference.isdigit() or int(reference) not in chains:
            raise ValueError(f"{name}: no chain with that id; add it to SERVICE_CHAINS_FILE first")
        chains[int(reference)] = msgspec.structs.replace(chains[int(reference)], rpc_urls=(url,))
    declared = [chain.id for chain in chains.values() if chain.active]
    default = environment.get("SERVICE_DEFAULT_CHAIN_ID") or str(declared[0] if declared else 1)
    if not default.isdigit():
        raise ValueError("SERVICE_DEFAULT_CHAIN_ID must be a number")
    return ChainTable(chains, int(default))


def _from_file(path: Path, known: Mapping[int, Chain]) -> dict[int, Chain]:
    try:
        rows = tomllib.loads(path.read_text()).get("chains", [])
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise ValueError(f"SERVICE_CHAINS_FILE: {problem}") from problem
    found = {}
    for row in rows:
        base = known.get(row.get("id"))
        merged = {**(msgspec.structs.asdict(base) if base else {}), **row}
        try:
            chain = msgspec.convert(merged, Chain)
        except msgspec.ValidationError as problem:
            raise ValueError(f"SERVICE_CHAINS_FILE: {problem}") from problem
        found[chain.id] = chain
    return found
