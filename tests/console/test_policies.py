"""An agent's rules in the console: every type of rule as it is judged."""

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.at_agents import at
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Tenant, rule
from tests.fixtures.consoles import NARROW, WIDE
from tests.fixtures.server import Service

pytestmark = pytest.mark.long

ETHER = 10**18
EVERY_TYPE = (
    rule("spending-limit", maxPerTransaction=str(ETHER // 2), maxPerDay=str(2 * ETHER), asset="evm:native"),
    rule("approved-addresses", addresses=[ADDRESS, OTHER_ADDRESS]),
    rule("approved-addresses", addresses=[ADDRESS], mode="blacklist", enabled=False),
    rule("auto-approve-threshold", threshold="1500000000", asset="solana:native"),
    rule(
        "time-window",
        allowedHours=[{"start": 9, "end": 17}, {"start": 22, "end": 6}],
        allowedDays=[1, 5],
        timezone="Europe/Berlin",
    ),
    rule("rate-limit", maxTxPerHour=10, maxTxPerDay=100),
    rule("allowed-chains", chains=[1, "eip155:8453", 101]),
    rule(
        "contract-allowlist",
        contracts=[
            {
                "address": OTHER_ADDRESS,
                "chainId": 8453,
                "selectors": ["0xa9059cbb", "0x095ea7b3"],
                "constraints": {"0xa9059cbb": {"recipientAllowlist": [ADDRESS], "maxAmount": "5000000"}},
            }
        ],
    ),
)


async def test_every_type_of_rule_is_said_in_stored_order(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    tenant.agent(*EVERY_TYPE, agent_id="careful")

    async with at("policies", service, folder, tenant, size=(140, 70)) as console:
        await console.sees("8. Contracts that may be called")

        assert await console.picture() == pictures


async def test_rules_as_they_are_stored_come_and_go_with_v(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    tenant.agent(rule("rate-limit", maxTxPerDay=5) | {"id": "few"}, agent_id="careful")

    async with at("policies", service, folder, tenant, size=NARROW, theme="light") as console:
        await console.sees("at most 5 orders in any day")
        await console.press("v")
        await console.sees('"maxTxPerDay": 5')
        assert await console.picture() == pictures
        await console.press("v")

        await console.sees_no('"maxTxPerDay": 5')


@pytest.mark.parametrize(
    ("rules", "meaning"),
    [
        ((), "It has no rules: every order of this agent is signed without approval"),
        ((rule("rate-limit", maxTxPerDay=5, enabled=False),), "All of its rules are disabled"),
    ],
    ids=["none", "disabled"],
)
async def test_a_set_that_judges_nothing_says_so(
    service: Service, tenant: Tenant, folder: Path, rules: Any, meaning: str
) -> None:
    tenant.agent(*rules, agent_id="free")

    async with at("policies", service, folder, tenant, size=WIDE) as console:
        await console.sees(meaning)
