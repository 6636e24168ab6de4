"""A deployment without a scheduler, in front of nodes that a test may make lie; the test itself is the scheduler."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode, running_evm_node
from tests.outside.lying_node import LyingNode, running_lying_node
from tests.outside.solana_node import SolanaNode, running_solana_node
from tests.tx_tracking.scheduling import Scheduling, scheduling

# A chain that is sure of a block after three.
# Of fees; a coin without a price is in tests/routes/platform.
PRICES = {"ETH": "3120.55", "SOL": "150.25"}
CHAINS = """
[[chains]]
id = 31337
confirmations = 3
[[chains]]
id = 102
[[chains.tokens]]
address = "{mint}"
symbol = "COIN"
decimals = 6
"""


@pytest.fixture(scope="session")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """Rows that no other scheduler touches."""
    return database_apart(postgres_home, f"following_{worker_id}")


@pytest.fixture(scope="session")
def chain() -> Iterator[EvmNode]:
    """Our own local chain, because it can be told when to mine, what to drop, and to go back; with Permit2."""
    with running_evm_node("permit2") as node:
        yield node


@pytest.fixture(scope="session")
def evm_liar(chain: EvmNode) -> Iterator[LyingNode]:
    with running_lying_node(chain.url) as node:
        yield node


@pytest.fixture(scope="session")
def cluster() -> Iterator[SolanaNode]:
    with running_solana_node() as node:
        yield node


@pytest.fixture(scope="session")
def solana_liar(cluster: SolanaNode) -> Iterator[LyingNode]:
    with running_lying_node(cluster.url) as node:
        yield node


@pytest.fixture(scope="session")
def mint(cluster: SolanaNode) -> str:
    """A token that the operator lists."""
    return cluster.create_mint()


@pytest.fixture(scope="session")
def world(
    tmp_path_factory: pytest.TempPathFactory, evm_liar: LyingNode, solana_liar: LyingNode, mint: str
) -> dict[str, str]:
    """Addresses of the chains, for the processes and for the test."""
    file: Path = tmp_path_factory.mktemp("chains") / "chains.toml"
    file.write_text(CHAINS.format(mint=mint))
    prices = file.with_name("prices.toml")
    prices.write_text("".join(f'{symbol} = "{price}"\n' for symbol, price in PRICES.items()))
    return {
        "SERVICE_CHAINS_FILE": str(file),
        "SERVICE_PRICES_FILE": str(prices),
        "SERVICE_RPC_URL_31337": evm_liar.url,
        "SERVICE_RPC_URL_102": solana_liar.url,
    }


@pytest.fixture(scope="session")
def following(apart: Database, world: dict[str, str]) -> Iterator[Service]:
    with deploy(apart, **world) as running:
        yield running


@pytest.fixture
async def owner(apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """Moves times, and reads what no route shows."""
    async with owner_of(apart) as connection:
        yield connection


@pytest.fixture
async def scheduler(following: Service, world: dict[str, str], owner: asyncpg.Connection) -> AsyncIterator[Scheduling]:
    # What earlier tests left under way is no business of this one.
    await owner.execute("UPDATE transactions SET look_at = NULL, resend_at = NULL")
    async with scheduling(following, world, owner) as hand:
        yield hand


@pytest.fixture
async def second(following: Service, world: dict[str, str], owner: asyncpg.Connection) -> AsyncIterator[Scheduling]:
    """Another scheduler on the same database."""
    async with scheduling(following, world, owner) as hand:
        yield hand


@pytest.fixture
def payers(following: Service, evm_liar: LyingNode, solana_liar: LyingNode) -> Iterator[Tenant]:
    """A tenant; the nodes are honest until the test says otherwise."""
    evm_liar.be_honest()
    solana_liar.be_honest()
    with new_tenant(following) as tenant:
        yield tenant


@pytest.fixture
def payer(payers: Tenant, chain: EvmNode, cluster: SolanaNode) -> Agent:
    """An agent with funds on both chains."""
    agent = payers.agent()
    agent.tenant = payers
    chain.fund(agent.evm_address)
    cluster.fund(agent.solana_address)
    return agent
