"""Accounts in the console: wallets under one name, and what they hold."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.at_agents import at
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.accounts.makers import open_account

pytestmark = pytest.mark.long


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_an_account_shows_what_it_holds_in_all_and_wallet_by_wallet(
    service: Service,
    tenant: Tenant,
    folder: Path,
    evm_node: EvmNode,
    pictures: SnapshotAssertion,
    size: tuple[int, int],
) -> None:
    agents = [tenant.agent(agent_id=name) for name in ("payer", "saver")]
    for agent in agents:
        evm_node.fund(agent.evm_address, 1_500_000_000_000_000_000)
    # Addresses of Solana are of several lengths, which a picture would show.
    wallets = [{"chain_type": "evm", "wallet_id": agent.id} for agent in agents]
    made = open_account(tenant, id="treasury", displayName="Treasury", wallets_configuration=wallets)
    async with at("agents", service, folder, tenant, size=size) as console:
        await console.sees("payer")
        await console.press("o")
        await console.sees("Treasury", "3 ETH", "Holds in all")

        random = [wallet["address"].removeprefix("0x") for wallet in made["wallets"]]
        assert await console.picture(tenant.id, made["createdAt"][:19].replace("T", " "), *random) == pictures
        await console.press("escape")
        await console.sees("z Freeze", "saver")


async def test_a_deleted_agent_and_nothing_at_all_are_said(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = tenant.agent(agent_id="payer")
    async with at("agents", service, folder, tenant) as console:
        await console.sees("payer")
        await console.press("o")
        await console.sees("No accounts.", "The API makes them: POST /accounts")
        open_account(tenant, agent, id="treasury")
        tenant.ok("DELETE", f"/agents/{agent.id}")
        await console.press("r")
        await console.sees("The agent was deleted: there is no wallet any more.")
