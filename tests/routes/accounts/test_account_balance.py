"""Balances of an account: over its wallets and chains at once, exact, and never worse for one node that is away."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from ops import places
from tests.fixtures.callers import ADDRESS, AsyncClient, Tenant, new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import EVM_CHAIN, SOLANA_CHAIN, Service
from tests.outside.bad_node import BadNode, running_bad_node
from tests.outside.evm_node import EvmNode
from tests.outside.solana_node import SolanaNode
from tests.routes.accounts.makers import open_account, status_and_code


def test_a_treasury_over_both_families_is_added_up(tenant: Tenant, evm_node: EvmNode, solana_node: SolanaNode) -> None:
    first, second = tenant.agent(), tenant.agent()
    evm_node.fund(first.evm_address, 1_500_000_000_000_000_000)
    evm_node.fund(second.evm_address, 10**24)
    usdx = evm_node.deploy_erc20(first.evm_address, supply=7_000_000).lower()
    solana_node.fund(first.solana_address, 2_000_000_001)
    mint = solana_node.create_mint()
    solana_node.mint_to(mint, first.solana_address, 1_500_000)
    solana_node.mint_to(mint, second.solana_address, 1)
    open_account(tenant, first, second, id="treasury")

    found = tenant.ok("GET", f"/accounts/treasury/balance?tokens={usdx}")

    natives = {(one["walletId"], one["chainId"]): one for one in found["balances"]}
    assert natives[first.id, EVM_CHAIN] == {
        "walletId": first.id,
        "chainFamily": "evm",
        "chainId": EVM_CHAIN,
        "symbol": "ETH",
        "native": "1500000000000000000",
        "nativeFormatted": "1.500000",
        "walletAddress": first.evm_address,
    }
    assert natives[second.id, EVM_CHAIN]["native"] == str(10**24)
    assert natives[first.id, SOLANA_CHAIN]["nativeFormatted"] == "2.000000"
    tokens = {(one["walletId"], one["token"]): (one["balance"], one["symbol"]) for one in found["tokenBalances"]}
    assert tokens == {
        (first.id, usdx): ("7000000", "USDX"),
        (second.id, usdx): ("0", "USDX"),
        (first.id, mint): ("1500000", None),
        (second.id, mint): ("1", None),
    }
    totals = {one["chainId"]: one["native"] for one in found["rollups"]["native"]}
    assert totals[EVM_CHAIN] == str(1_500_000_000_000_000_000 + 10**24)
    assert {one["token"]: one["balance"] for one in found["rollups"]["tokens"]} == {usdx: "7000000", mint: "1500001"}
    assert (found["id"], found["accountId"], found["account_id"]) == ("treasury",) * 3
    assert len(found["wallets"]) == 4


def test_one_chain_may_be_asked(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    open_account(tenant, agent, id="mine")

    found = tenant.ok("GET", f"/accounts/mine/balance?chainId={EVM_CHAIN}&tokens={ADDRESS}")

    assert [one["chainId"] for one in found["balances"]] == [EVM_CHAIN]
    # Named on a chain that was named too, a token that is none there is told so.
    assert found["tokenBalances"][0]["note"] == "No token at this address reports a balance."
    everywhere = tenant.ok("GET", f"/accounts/mine/balance?tokens={ADDRESS}")
    assert everywhere["tokenBalances"] == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tokens=" + ",".join([ADDRESS] * 26), "too_many_tokens"),
        ("tokens=0x12", "bad_token"),
        ("chainId=999", "unknown_chain"),
        ("chainId=x", "bad_query"),
    ],
    ids=["26 tokens", "address", "unknown chain", "no number"],
)
def test_a_bad_question_is_400(tenant: Tenant, query: str, code: str) -> None:
    open_account(tenant, id="mine")

    assert status_and_code(tenant.get(f"/accounts/mine/balance?{query}")) == (400, code)


def test_an_account_without_wallets_holds_nothing(tenant: Tenant) -> None:
    open_account(tenant, id="mine")

    found = tenant.ok("GET", "/accounts/mine/balance")

    assert (found["balances"], found["tokenBalances"]) == ([], [])
    assert found["rollups"] == {"native": [], "tokens": []}


def test_a_deleted_agents_wallet_has_a_note(tenant: Tenant) -> None:
    gone, there = tenant.agent(), tenant.agent()
    open_account(tenant, gone, there, id="mine")
    tenant.ok("DELETE", f"/agents/{gone.id}")

    found = tenant.ok("GET", f"/accounts/mine/balance?chainId={EVM_CHAIN}")["balances"]

    assert [(one["native"], one.get("note")) for one in found] == [
        (None, "The wallet's agent was deleted."),
        ("0", None),
    ]


@pytest.fixture(scope="module")
def bad_node() -> Iterator[BadNode]:
    with running_bad_node() as node:
        yield node


@pytest.fixture(scope="module")
def silent_node() -> Iterator[BadNode]:
    """One that nobody knows to be silent yet: what is known lasts ten seconds."""
    with running_bad_node() as node:
        yield node


@pytest.fixture(scope="module")
def two_chains(
    postgres_home: places.Home, worker_id: str, evm_node: EvmNode, bad_node: BadNode, silent_node: BadNode
) -> Iterator[Service]:
    """A deployment with two more EVM chains, whose nodes do what a test wants."""
    nodes = {
        f"SERVICE_RPC_URL_{EVM_CHAIN}": evm_node.url,
        "SERVICE_RPC_URL_1": f"http://{bad_node.address}",
        "SERVICE_RPC_URL_10": f"http://{silent_node.address}",
    }
    with deploy(database_apart(postgres_home, f"{worker_id}_two_chains"), **nodes) as service:
        yield service


def _hangs(node: BadNode) -> None:
    node.silent.clear()


def _says_too_much(node: BadNode) -> None:
    node.body = b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"0" * 10 * 2**20 + b'"}'


def _says_nonsense(node: BadNode) -> None:
    node.body = b"<html>"


@pytest.mark.long
@pytest.mark.parametrize("misbehaves", [_hangs, _says_too_much, _says_nonsense], ids=lambda one: one.__name__[1:])
def test_one_bad_node_costs_a_note_and_no_answer(
    two_chains: Service, evm_node: EvmNode, bad_node: BadNode, misbehaves: Callable[[BadNode], None]
) -> None:
    misbehaves(bad_node)
    try:
        with new_tenant(two_chains) as tenant:
            agents = [tenant.agent() for _ in range(5)]
            evm_node.fund(agents[4].evm_address, 5)
            open_account(tenant, *agents, id="mine")

            found = tenant.ok("GET", "/accounts/mine/balance")

            by_chain = {
                chain: [one for one in found["balances"] if one["chainId"] == chain] for chain in (1, EVM_CHAIN)
            }
            assert [one["native"] for one in by_chain[EVM_CHAIN]] == ["0", "0", "0", "0", "5"]
            assert [one["native"] for one in by_chain[1]] == [None] * 5
            assert all(one["note"] for one in by_chain[1])
            assert found["rollups"]["native"] == [{"chainId": EVM_CHAIN, "symbol": "ETH", "native": "5"}]
    finally:
        bad_node.silent.set()


@pytest.mark.long
async def test_a_tenant_asks_for_one_balance_at_a_time(two_chains: Service, silent_node: BadNode) -> None:
    with new_tenant(two_chains) as tenant, new_tenant(two_chains) as other:
        for one in (tenant, other):
            open_account(one, one.agent(), id="mine")
        silent_node.silent.clear()
        try:
            async with AsyncClient(base_url=two_chains.url, timeout=60) as http:
                asked = [http.get("/accounts/mine/balance", headers=one.headers) for one in [*[tenant] * 12, other]]
                *answers, theirs = await asyncio.gather(*asked)
        finally:
            silent_node.silent.set()

    # One has its turn, eight wait for it, and another tenant for none of them.
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [429] * 3
    assert {status_and_code(answer) for answer in answers if answer.status_code == 429} == {(429, "balance_already")}
    assert theirs.status_code == 200
