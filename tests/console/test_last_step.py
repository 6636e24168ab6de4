"""The last step: a key of its own where a danger is shown, and names that nobody but the tenant gave. Decision 0038."""

from pathlib import Path

import pytest

from console.widgets.columns import fit
from tests.console.orders import THEM, order, pays
from tests.console.queues import APPROVE, ORDINARY, ask, queue, state
from tests.console.waiting import queue_order
from tests.fixtures.callers import OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import Service
from words.orders.lists import names_on_lists, self_listed
from words.orders.order import Known
from words.orders.parties import parties
from words.shapes import PolicyRule
from words.texts.amounts import short_amount
from words.texts.lines import Line


async def test_where_a_danger_is_shown_enter_approves_nothing_and_elsewhere_it_does(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first = queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await ask(console, "a")
        await console.sees("! First time", APPROVE)
        await console.press("enter", "enter", "enter")
        await console.pilot.click("#confirm")
        await console.sees("There is a warning above. y: Approve")
        assert state(tenant, first) == "pending"

        await console.press("y")
        await console.sees("Approved by you")

        second = queue_order(agent, 4)
        await console.sees("1 waiting")
        await console.press("home")
        await console.sees("(4 wei)", "paid before")
        await ask(console, "a")
        await console.sees(ORDINARY)
        await console.press("y")
        await console.pilot.pause()
        assert state(tenant, second) == "pending"
        await console.press("enter")
        await console.until(lambda: state(tenant, second) == "approved", "the second")


async def test_a_list_that_the_agent_itself_set_gives_no_name(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    path = f"/agents/{agent.id}/policies"
    agent.ok("PUT", path, [*agent.ok("GET", path), rule("approved-addresses", addresses=[OTHER_ADDRESS])])
    queue_order(agent, to=OTHER_ADDRESS)
    async with queue(service, tenant, folder, size=(260, 60)) as console:
        await console.sees(
            "unknown: not an agent here, not on an approved list of the tenant",
            "on a list that the tenant did not set: unverified",
            "approved-addresses (not set by the tenant)",
        )

        assert "on the approved list of this agent" not in console.flat


def addresses_rule(*addresses: str, source: str | None = None, mode: str = "whitelist") -> PolicyRule:
    return PolicyRule("approved-addresses", True, {"addresses": list(addresses), "mode": mode}, source=source)


def test_names_come_from_lists_of_the_tenant_alone_and_warnings_from_every_list() -> None:
    rules = [
        addresses_rule(THEM, source="agent"),
        addresses_rule("0x" + "22" * 20),
        addresses_rule("0x" + "33" * 20, mode="blacklist"),
    ]

    assert names_on_lists(rules) == {
        "0x" + "22" * 20: "on the approved list of this agent",
        "0x" + "33" * 20: "on the BLOCKED list of this agent",
    }
    assert self_listed(rules) == {THEM}


def test_an_address_on_both_lists_keeps_its_name_and_the_agents_own_list_is_said() -> None:
    known = Known(names={THEM: "on the approved list of this agent"}, self_listed=frozenset({THEM}))

    lines = parties(THEM, order(pays()), known)

    assert lines[1:] == [
        Line("  on the approved list of this agent"),
        Line("  on a list that the tenant did not set: unverified", "warn"),
    ]


@pytest.mark.parametrize(
    ("amount", "short"),
    [
        ("0.001000000000000002", "0.001000…"),
        ("0.00000000000000123", "0.000000000000001…"),
        ("1.5", "1.5"),
        ("1.1234567", "1.1234567"),
        ("1,234,567.123456789", "1,234,567.123456…"),
        ("999,999,999,999,999", "999,999,999,999,999"),
        ("1,000,000,000,000,002", "1,000…(16 digits)"),
    ],
)
def test_an_amount_in_a_list_says_what_was_left_out(amount: str, short: str) -> None:
    assert short_amount(amount) == short


@pytest.mark.parametrize(
    ("width", "seen"),
    [
        (40, "Sends 123,456.75 ETH to 0x12…"),
        (21, "Sends 123,456.75 ETH…"),
        (15, "Sends 123,456.…"),
        (12, "Sends …"),
        (9, "Sends …"),
    ],
)
def test_a_column_never_shows_the_first_digits_of_an_amount(width: int, seen: str) -> None:
    assert fit("Sends 123,456.75 ETH to 0x12…", width, right=False).split() == seen.split()
