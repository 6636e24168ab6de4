"""Agents in the console: who there is, one at a glance, freezing and going on."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from console.agents.agent_in_words import agent_in_words
from console.agents.agent_pages import all_agents
from console.agents.agent_summary import AgentSummary
from console.agents.spending import Day, sparkline, spending
from console.app import REST_SECONDS
from console.queue.queue import Queue
from console.widgets.agent_list import AgentList
from console.wire.api_client import ApiClient
from console.wire.shapes_agents import AgentDashboard
from tests.console.at_agents import KEYS, a_while_after, at, random_of
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.consoles import NARROW, WIDE, driving
from tests.fixtures.deployments import owner_of
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside import odd_api
from tests.outside.evm_node import EvmNode
from tests.outside.odd_api import refuses, succeeds
from words.shapes import Agent as ShownAgent
from words.shapes import Approval, Transaction
from words.texts.amounts import human
from words.texts.lines import Line
from words.texts.moments import local_now

pytestmark = pytest.mark.long

ETHER = 10**18
REASON = "orders at [red]night[/red]"


@pytest.fixture
def tenant(service: Service, request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """A tenant of this test's own, with an agent `payroll` for the tests that ask for it.

    The agent's Solana address has 44 letters: of seventeen one has 43, and a picture's line would be shorter.
    """
    while True:
        with new_tenant(service) as made:
            if "payroll" not in request.fixturenames or len(made.agent(agent_id="payroll").solana_address) == 44:
                yield made
                return


@pytest.fixture(name="payroll")
def payroll_agent(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with money, limits, a signed order and one that waits."""
    agent = tenant.agents[0]
    rules = [
        rule("auto-approve-threshold", threshold=str(ETHER // 2), asset="evm:native"),
        rule("spending-limit", maxPerDay=str(ETHER), asset="evm:native"),
    ]
    tenant.ok("PUT", "/agents/payroll/policies", rules)
    evm_node.fund(agent.evm_address, 5 * ETHER)
    agent.sign(value=3 * ETHER // 10)
    agent.sign(value=6 * ETHER // 10)
    return agent


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_one_agent_at_a_glance(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path, pictures: SnapshotAssertion, size: tuple[int, int]
) -> None:
    now = a_while_after(tenant, "payroll")
    async with at("agents", service, folder, tenant, size=size, now=now) as console:
        await console.sees("Holds", "5 ETH (5,000,000,000,000,000,000 wei)")

        assert await console.picture(*random_of(tenant, "payroll")) == pictures


async def test_the_figures_are_those_of_the_api(service: Service, tenant: Tenant, payroll: Agent, folder: Path) -> None:
    board = tenant.ok("GET", "/dashboard/payroll")
    budget = board["budgets"][0]

    async with at("agents", service, folder, tenant) as console:
        await console.sees("Last orders")

        assert f"{human(int(board['balances']['evm']['native']), 18)} ETH" in console.flat
        assert f"today {human(int(board['spend']['today']), 18)} coins" in console.flat
        assert f"this week {human(int(board['spend']['thisWeek']), 18)} coins" in console.flat
        assert f"spent {human(int(budget['spent']), 18)}" in console.flat
        assert "1 approval pending" in console.flat
        assert all(address in console.flat for address in (payroll.evm_address, payroll.solana_address))


async def test_spending_is_shown_on_the_day_it_was_asked_for(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path
) -> None:
    # Not just before midnight: the order stays on its day however long this takes.
    then = (local_now().astimezone(UTC) - timedelta(days=3)).replace(hour=12)
    async with owner_of(service.database) as database:
        await database.execute(
            "UPDATE transactions SET created_at = $1 WHERE tenant_id = $2 AND status = 'signed'", then, tenant.id
        )

    async with at("agents", service, folder, tenant) as console:
        await console.sees(f"{then:%d %b} 0.3 coins")

        assert "··········█···" in console.text


def test_where_no_node_answers_that_is_said_calmly_and_the_rest_is_shown() -> None:
    wallets = {"evm": ADDRESS, "solana": "1" * 32}
    agent = msgspec.convert(
        {"id": "a", "name": "A", "tenantId": "t", "walletAddresses": wallets, "createdAt": "2026-01-01T00:00:00.000Z"},
        type=ShownAgent,
    )
    spend = {"today": "1", "thisWeek": "2", "thisMonth": "3"}
    board = {"balances": {"evm": None}, "spend": spend, "budgets": [], "policies": [], "pendingApprovals": 0}
    seen = AgentSummary(msgspec.convert({**board, "recentTransactions": []}, type=AgentDashboard), None, None, None)

    said = agent_in_words(agent, seen, local_now())

    assert Line("  EVM: no node answered, so its balance is unknown.", "quiet") in said
    assert Line("  this month 0.000000000000000003 coins (3 wei)") in said


def test_days_of_which_not_all_was_read_are_not_said_to_be_empty() -> None:
    today = date(2026, 3, 14)
    at_noon = {"id": "x", "agentId": "a", "kind": "evm", "status": "signed", "value": "8"}
    order = msgspec.convert({**at_noon, "createdAt": "2026-03-13T12:00:00.000Z"}, type=Transaction)

    shown = spending([order], today, known_from=date(2026, 3, 12), left_out=7)

    assert sparkline(shown.days) == "???????????·█·"
    assert shown.left_out == 7


def test_a_block_is_as_high_as_the_share_of_the_highest_day() -> None:
    spent = [0, 1, 50, 51, 100, 2**256, None]

    assert sparkline([Day(date(2026, 1, 1), amount) for amount in spent]) == "·▁▁▁▁█?"
    assert sparkline([Day(date(2026, 1, 1), amount) for amount in (1, 50, 51, 100)]) == "▁▄▅█"


async def test_typing_filters_agents_and_escape_shows_all_again(service: Service, tenant: Tenant, folder: Path) -> None:
    # What is typed is looked for in addresses too, and none has this character.
    for name in ("alpha_1", "beta_2", "gamma_3"):
        tenant.agent(agent_id=name)

    async with at("agents", service, folder, tenant) as console:
        await console.sees("3 agents")
        await console.sees("Holds")
        await console.press("slash")
        await console.write("a_2")
        await console.sees("1 of 3 agents")
        await console.sees_no("Agent gamma")
        await console.press("escape")

        await console.sees("3 agents", "Agent gamma")


async def test_s_sorts_by_name(service: Service, tenant: Tenant, folder: Path) -> None:
    for name in ("alpha", "gamma", "beta"):
        tenant.agent(agent_id=name)

    async with at("agents", service, folder, tenant) as console:
        await console.sees("newest first", "Holds")
        await console.press("s")
        await console.sees("by name")

        assert re.findall(r"Agent (\w+)  ", console.text)[:3] == ["alpha", "beta", "gamma"]


async def test_pending_approvals_are_counted_over_the_whole_queue() -> None:
    wallets = {"evm": ADDRESS, "solana": "1" * 32}
    agent = {"id": "a", "name": "A", "tenantId": "t", "walletAddresses": wallets, "createdAt": "2026-01-01T00:00:00Z"}
    queue, now = Queue(), local_now()
    queue.merge_first([waiting(number) for number in range(200)], 300, now)
    queue.merge_sweep([waiting(number) for number in range(200, 300)], now)
    async with odd_api.odd_api("http://127.0.0.1:9") as api:
        api.does(succeeds([agent], X_Total_Count="1"), "/agents")
        api.does(refuses(403, "no"), "/tenants")
        api.does(succeeds([], X_Total_Count="300"), "/approvals")
        client = ApiClient(api.url)

        before = await all_agents(client, None, queue)
        queue.whole = True
        known = await all_agents(client, None, queue)
        await client.close()

    assert (before.waiting["a"], before.waiting_complete) == (0, False)
    assert (known.waiting["a"], known.waiting_complete) == (300, True)
    assert len(api.at("/approvals")) == 1


def waiting(number: int) -> Approval:
    """One of many that wait."""
    at, both = f"2026-01-01T{number // 60:02}:{number % 60:02}:00.000Z", {"kind": "evm", "digest": "d"}
    return Approval(
        id=f"i-{number}",
        tx_id=f"t-{number}",
        agent_id="a",
        agent_name="A",
        status="pending",
        requested_at=at,
        **both,
    )


async def test_the_footer_says_what_the_keys_do_now_and_fits(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path
) -> None:
    async with at("agents", service, folder, tenant, size=NARROW) as console:
        await console.sees("Holds")
        before = console.text.splitlines()[-1]
        tenant.ok("POST", "/agents/payroll/freeze", {})
        await console.press("r")
        await console.sees("FROZEN since")
        await console.until(lambda: "z Unfreeze" in console.text, "the key")

    assert ("z Freeze" in before, "Z Freeze all" in before, before.rstrip().endswith("q Quit")) == (True, True, True)


async def test_freezing_asks_first(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path, pictures: SnapshotAssertion
) -> None:
    now = a_while_after(tenant, "payroll")
    async with at("agents", service, folder, tenant, size=NARROW, now=now) as console:
        await console.sees("Holds")
        await console.press("z")
        await console.sees("Freeze this agent?")

        assert await console.picture(*random_of(tenant, "payroll")) == pictures
        await console.press("escape")
        assert payroll.sign().status_code == 200


async def test_a_frozen_agent_signs_nothing_and_shows_why(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path, pictures: SnapshotAssertion
) -> None:
    now = a_while_after(tenant, "payroll")
    async with at("agents", service, folder, tenant, now=now) as console:
        await console.sees("Holds")
        await console.press("z")
        await console.sees("Freeze this agent?")
        await console.press(*("left_square_bracket" if letter == "[" else letter for letter in "odd["), "enter")
        await console.sees("FROZEN since", 'Reason: "odd["')

        assert payroll.sign().status_code == 423
        await console.sees_no("is frozen.")
        assert await console.picture(*random_of(tenant, "payroll")) == pictures


async def test_a_tenant_key_cannot_unfreeze_and_is_told_who_can(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path
) -> None:
    tenant.ok("POST", "/agents/payroll/freeze", {"reason": REASON})

    async with at("agents", service, folder, tenant) as console:
        await console.sees("FROZEN since", REASON)
        await console.press("z")

        await console.sees("Unfreezing requires a signed-in person", "Press i to sign in")
        assert payroll.sign().status_code == 423


async def test_a_person_unfreezes(
    service: Service, tenant: Tenant, as_owner: Person, payroll: Agent, folder: Path
) -> None:
    tenant.ok("POST", "/agents/payroll/freeze", {})

    async with at("agents", service, folder, as_owner) as console:
        await console.sees("FROZEN since", "none was given")
        await console.press("z")
        await console.sees("Unfreeze this agent?")
        await console.press("enter")

        await console.sees_no("FROZEN since", "Unfreeze this agent?")
        assert payroll.sign().status_code == 200


async def test_the_whole_tenant_is_frozen_only_by_its_id(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path
) -> None:
    async with at("agents", service, folder, tenant) as console:
        await console.sees("Holds")
        await console.press("Z")
        await console.sees("Freeze the WHOLE TENANT?")
        await console.write("payroll")
        await console.press("enter")
        await console.sees("Type the tenant's id exactly")
        assert payroll.sign().status_code == 200

        await console.press("home", "ctrl+k")
        await console.write(tenant.id)
        await console.press("enter")

        await console.sees("THE WHOLE TENANT IS FROZEN: no order is signed for any agent.")
        assert payroll.sign().status_code == 423


@pytest.mark.parametrize("how", ["read-only", "viewer"])
async def test_a_person_who_may_not_freeze_has_no_key_for_it(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path, how: str
) -> None:
    with closing(member(service, tenant, "viewer")) as viewer:
        who: Any = tenant if how == "read-only" else viewer
        async with at("agents", service, folder, who, read_only=how == "read-only") as console:
            await console.sees("Holds", "Policies")
            await console.press("z", "Z")
            await console.press("s")
            await console.sees("by name")

            assert "Freeze" not in console.text


async def test_enter_goes_to_the_transactions_of_the_agent_and_p_to_its_policies(
    service: Service, tenant: Tenant, payroll: Agent, folder: Path
) -> None:
    tenant.agent(agent_id="other")

    async with at("agents", service, folder, tenant) as console:
        await console.sees("2 agents", "Holds")
        await console.press("j", "enter")
        await console.until(lambda: console.app.current_mode == "transactions", "the transactions")
        assert console.app.chosen_agent == "payroll"
        await console.press("2", "p")

        await console.sees("Rules of Agent payroll")


@pytest.mark.long
async def test_a_thousand_agents_are_run_through_without_a_flood(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    # A busy machine presses keys more slowly than a person; and what the place asks by the clock is not counted.
    for hundred in range(10):
        agents = [{"id": f"a-{hundred}{one:02}", "name": f"Agent {hundred}{one:02}"} for one in range(100)]
        tenant.ok("POST", "/agents/batch", {"agents": agents})

    async with (
        odd_api.odd_api(service.url) as api,
        driving(api.url, folder, key=tenant.key, rest=15 * REST_SECONDS, every=3600) as console,
    ):
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press(KEYS["agents"])
        await console.sees("1,000 agents", "Holds")
        before = len(api.at("/dashboard/"))
        await console.press(*["j"] * 30, "end")
        last = console.one(AgentList).agent
        assert last is not None
        await console.until(lambda: console.app.chosen_agent == last.id, "rest")
        await console.sees(f"id {last.id}", "Holds")

        assert [one.path for one in api.at("/dashboard/")[before:]] == [f"/dashboard/{last.id}"]
