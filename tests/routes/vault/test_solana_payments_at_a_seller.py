"""Payments on Solana held against x402's own packages: their facilitator verifies, sponsors and settles them."""

import base64
import json
from collections.abc import Iterator

import pytest
from solders.keypair import Keypair

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import SOLANA_CHAIN, Service
from tests.outside import npm
from tests.outside.solana_node import SolanaNode, running_solana_node
from tests.outside.x402.seller import running_solana_seller

pytestmark = [pytest.mark.long, pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")]

SPONSOR = b"\x2e" * 32
PAY_TO = str(Keypair.from_seed(b"\x2f" * 32).pubkey())
NAMED = rule("approved-addresses", addresses=[PAY_TO], mode="whitelist")


@pytest.fixture(name="node", scope="module")
def node_fixture() -> Iterator[SolanaNode]:
    """A node that executes the real programs."""
    with running_solana_node() as node:
        yield node


@pytest.fixture(name="mint", scope="module")
def mint_fixture(node: SolanaNode) -> str:
    """A token in which the seller holds nothing yet, and whose facilitator has what fees cost."""
    mint = node.create_mint()
    node.mint_to(mint, PAY_TO, 0)
    node.fund(str(Keypair.from_seed(SPONSOR).pubkey()))
    return mint


@pytest.fixture(name="selling", scope="module")
def selling_fixture(
    node: SolanaNode, mint: str, postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A deployment whose operator names the token: its decimals are part of what is signed."""
    token = f'{{address = "{mint}", symbol = "USDX", decimals = 6}}'
    file = tmp_path_factory.mktemp("chains") / "chains.toml"
    file.write_text(f"[[chains]]\nid = {SOLANA_CHAIN}\ntokens = [{token}]\n")
    named = {"SERVICE_CHAINS_FILE": str(file), f"SERVICE_RPC_URL_{SOLANA_CHAIN}": node.url}
    with deploy(database_apart(postgres_home, f"{worker_id}_solana_seller"), **named) as service:
        yield service


@pytest.fixture(name="payer")
def payer_fixture(selling: Service) -> Iterator[Tenant]:
    """A tenant of this test's own."""
    with new_tenant(selling) as tenant:
        yield tenant


def balance(node: SolanaNode, mint: str, owner: str) -> int:
    """The tokens of an owner."""
    [held] = node.rpc("getTokenAccountsByOwner", owner, {"mint": mint}, {"encoding": "jsonParsed"})["value"]
    return int(held["account"]["data"]["parsed"]["info"]["tokenAmount"]["amount"])


def new_agent(tenant: Tenant, node: SolanaNode, mint: str) -> Agent:
    """An agent with 1000 tokens, and not a lamport; it may spend 100 a day."""
    agent = tenant.agent(NAMED, rule("spending-limit", maxPerDay="100", asset=f"solana:{mint}"))
    node.mint_to(mint, agent.solana_address, 1000)
    return agent


@pytest.mark.parametrize("fresh", [False, True])
def test_their_facilitator_takes_a_payment_once(payer: Tenant, node: SolanaNode, mint: str, fresh: bool) -> None:
    agent, before = new_agent(payer, node, mint), balance(node, mint, PAY_TO)
    with running_solana_seller(node.url, mint, SPONSOR, PAY_TO, fresh=fresh) as seller:
        demanded = seller.ask()
        [offer] = json.loads(base64.b64decode(demanded.headers["PAYMENT-REQUIRED"]))["accepts"]
        assert (demanded.status_code, "recentBlockhash" in offer["extra"]) == (402, fresh)

        demand = {"demand": demanded.headers["PAYMENT-REQUIRED"]}
        paid = agent.ok("POST", f"/vault/{agent.id}/x402", demand)
        answer, again = (seller.ask(**{paid["header"]: paid["value"]}) for _ in range(2))

    assert (answer.status_code, answer.json()) == (200, {"weather": "dry"}), answer.text
    assert again.status_code == 402
    assert (balance(node, mint, agent.solana_address), balance(node, mint, PAY_TO)) == (1000 - 60, before + 60)
    assert node.rpc("getBalance", agent.solana_address)["value"] == 0
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"


def test_their_facilitator_takes_nothing_less_than_was_demanded(payer: Tenant, node: SolanaNode, mint: str) -> None:
    agent = new_agent(payer, node, mint)
    with running_solana_seller(node.url, mint, SPONSOR, PAY_TO, fresh=False) as seller:
        demand = json.loads(base64.b64decode(seller.ask().headers["PAYMENT-REQUIRED"]))
        demand["accepts"][0]["amount"] = "59"

        paid = agent.ok("POST", f"/vault/{agent.id}/x402", {"demand": demand})
        answer = seller.ask(**{paid["header"]: paid["value"]})

    assert answer.status_code == 402
    assert balance(node, mint, agent.solana_address) == 1000
