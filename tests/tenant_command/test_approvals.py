"""`custody approvals`: the queue, and decisions that happen once."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.evm_node import EvmNode
from tests.outside.terminal import basics, terminal
from tests.routes.orders import message
from tests.tenant_command.test_account import next_code

ETHER = 10**18


@pytest.fixture
def buyer(tenant: Tenant) -> Agent:
    """An agent whose orders wait for a person."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"), agent_id="buyer")


def waits(agent: Agent, value: int = ETHER, **fields: Any) -> str:
    """An order that waits; gives the id of its item."""
    found: str = agent.sign(value=value, **fields).json()["data"]["approvalId"]
    return found


def status_of(tenant: Tenant, item: str) -> str:
    found: str = tenant.ok("GET", f"/approvals/{item}")["status"]
    return found


def test_the_queue_is_listed_by_amount_asset_and_recipient(desk: Desk, buyer: Agent) -> None:
    ether = waits(buyer, 4 * ETHER // 10)
    calldata = "0xa9059cbb" + OTHER_ADDRESS[2:].rjust(64, "0") + f"{60_000_000:064x}"
    token = waits(buyer, 0, to=ADDRESS, data=calldata)
    unlimited = waits(buyer, 0, to=ADDRESS, data="0x095ea7b3" + OTHER_ADDRESS[2:].rjust(64, "0") + "ff" * 32)
    unread = waits(buyer, 0, to=ADDRESS, data="0xdeadbeef")
    buyer.post("/vault/buyer/sign-message", json=message())
    rows = [line.split("\t") for line in desk.run("approvals", "list").said.splitlines()]
    found = {row[0]: row[2:5] for row in rows}

    assert found[ether] == ["0.4", "ETH", ADDRESS]
    assert found[token] == ["60,000,000 raw units", ADDRESS, OTHER_ADDRESS]
    assert found[unlimited] == ["UNLIMITED", ADDRESS, OTHER_ADDRESS]
    assert found[unread] == ["not decoded", "", ADDRESS]
    assert rows[0][2] == "Signs a message"
    assert {row[1] for row in rows} == {"buyer"}


def test_a_token_is_counted_and_called_as_it_says_itself(desk: Desk, buyer: Agent, evm_node: EvmNode) -> None:
    token = evm_node.deploy_erc20(buyer.evm_address, symbol="USDX", decimals=6)
    waits(buyer, 0, to=token, data="0xa9059cbb" + OTHER_ADDRESS[2:].rjust(64, "0") + f"{60_500_000:064x}")
    [line] = desk.run("approvals", "list").said.splitlines()

    amount, asset, recipient = line.split("\t")[2:5]
    assert (amount, recipient) == ("60.5", OTHER_ADDRESS)
    assert (asset[:42].lower(), asset[42:]) == (token.lower(), ' "USDX"')


def test_the_queue_is_narrowed_and_read_page_by_page(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    first, second = waits(buyer, referenceId="order-1"), waits(buyer)
    tenant.agent(rule("auto-approve-threshold", threshold="0"), agent_id="other").sign(value=1)
    tenant.ok("POST", f"/approvals/{second}/deny", {})

    assert [one["id"] for one in desk.ok("approvals", "list", "--agent", "buyer")] == [first]
    assert [one["id"] for one in desk.ok("approvals", "list", "--reference", "order-1")] == [first]
    assert [one["id"] for one in desk.ok("approvals", "list", "--status", "rejected")] == [second]
    assert len(desk.ok("approvals", "list", "--status", "all")) == 3
    assert len(desk.ok("approvals", "list", "--status", "all", "--limit", "2")) == 2
    assert desk.run("approvals", "list", "--agent", "nobody").said == ""


def test_a_list_that_is_longer_than_a_page_is_read_to_its_end(desk: Desk, buyer: Agent) -> None:
    # A page that nobody asks to be another has 50.
    items = [waits(buyer, 1) for _ in range(51)]

    assert [one["id"] for one in desk.ok("approvals", "list")] == items[::-1]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_ids_that_the_other_commands_take(desk: Desk, buyer: Agent, columns: int) -> None:
    item = waits(buyer)
    with terminal(desk.command("approvals", "list"), desk.home, desk.environment | basics(), (columns, 20)) as window:
        seen = window.sees("the program ended")
    shown = item[:8] if columns == 80 else item
    other = ("0" if item[0] != "0" else "1") + item[1:8]

    assert f"{shown} buyer 1 ETH 0x11111…111111" in seen
    assert desk.ok("approvals", "show", item[:8])["id"] == item
    assert desk.run("approvals", "show", item[:5]).status == 1
    assert f"begins with {other}" in desk.run("approvals", "show", other).complained


def test_an_item_is_shown_with_what_is_known_around_it(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    tenant.ok("PATCH", "/agents/buyer", {"name": "turned \u202eround"})
    item = waits(buyer)
    said = desk.run("approvals", "show", item).said

    assert said.startswith("! First time: this agent has never before paid this destination")
    assert "Sends 1 ETH (1,000,000,000,000,000,000 wei) to\n  0x1111111111111111111111111111111111111111\n" in said
    assert "turned <U+202E>round" in said
    assert "? needs approval  auto-approve-threshold" in said


def test_an_item_is_approved_by_somebody_who_read_it(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    item = waits(buyer)
    refused = desk.run("approvals", "approve", item)
    command = desk.command("approvals", "approve", item[:8], "--comment", "As agreed")
    with terminal(command, desk.home, desk.environment | basics(), (80, 44)) as window:
        window.sees("! First time", "Sends 1 ETH", ADDRESS, "Approve this? [y/N]:")
        before = status_of(tenant, item)
        window.press("y", "Enter")
        window.sees("Approved", "It was: Sends 1 ETH to 0x11111…111111.")
        assert window.wait_for_end() == 0
    found = tenant.ok("GET", f"/approvals/{item}")

    assert (refused.status, refused.said, before) == (1, "", "pending")
    assert "say it with --yes" in refused.complained
    assert (found["status"], found["comment"]) == ("approved", "As agreed")


def test_a_person_shows_the_factor_that_is_asked_for_and_the_decision_goes_on(
    careful_desk: Desk, careful: Person, tenant: Tenant, buyer: Agent
) -> None:
    item = waits(buyer)
    refused = careful_desk.run("approvals", "approve", item, "--yes", "--json")
    code = next_code(careful)
    command = careful_desk.command("approvals", "approve", item)
    with terminal(command, careful_desk.home, careful_desk.environment | basics()) as window:
        window.sees("Approve this? [y/N]:")
        window.press("y", "Enter")
        window.sees("Type the code of your authenticator or a recovery code")
        window.press(code, "Enter")
        window.sees("Approved")
        assert window.wait_for_end() == 0
    found = tenant.ok("GET", f"/approvals/{item}")

    assert refused.failure["code"] == "mfa_required"
    assert (found["status"], found["resolvedByUserId"]) == ("approved", careful.id)


def test_an_item_is_denied_with_a_reason_that_its_agent_reads(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    item = waits(buyer)
    answer = desk.ok("approvals", "deny", item, "--reason", "No such invoice")
    found = tenant.ok("GET", f"/approvals/{item}")

    assert (answer["status"], found["status"], found["reason"]) == ("rejected", "rejected", "No such invoice")
    assert desk.run("approvals", "approve", item, "--yes").complained.startswith("custody: Denied by a holder")


def test_a_decision_sent_again_under_its_key_happens_once(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    approved, denied = waits(buyer), waits(buyer)
    words = [("approve", approved, "--yes"), ("deny", denied, "--reason", "No")]
    answers = [[desk.ok("approvals", *one, "--key", f"decision-{one[1]}") for _ in range(2)] for one in words]
    other = desk.run("approvals", "approve", approved, "--yes", "--key", "another-key-than-that", "--json")
    without = desk.run("approvals", "approve", approved, "--yes")

    for once, again in answers:
        assert once == again
    assert other.failure["code"] == "approval_resolved"
    assert without.status == 1
    assert "Nothing is left to decide" in without.complained


def test_of_several_who_decide_at_once_one_does(desk: Desk, tenant: Tenant, buyer: Agent) -> None:
    item = waits(buyer)
    ways = [("approve", item, "--yes"), ("deny", item)] * 2
    racing = [
        subprocess.Popen(
            desk.command("approvals", *words, "--json"),
            cwd=desk.home,
            env=desk.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for words in ways
    ]
    for one in racing:
        one.communicate(timeout=120)
    ended = [one.returncode for one in racing]

    assert sorted(ended) == [0, 1, 1, 1]
    assert status_of(tenant, item) == ("approved", "rejected")[ended.index(0) % 2]


def test_an_item_that_todays_rules_refuse_stays_and_every_reason_is_told(
    desk: Desk, tenant: Tenant, buyer: Agent
) -> None:
    item = waits(buyer)
    tenant.ok("PUT", "/agents/buyer/policies", [rule("spending-limit", maxPerDay="5")])
    ended = desk.run("approvals", "approve", item, "--yes")
    told = desk.run("approvals", "approve", item, "--yes", "--json")

    assert (ended.status, ended.said) == (1, "")
    assert "spending-limit: 1 ETH" in ended.complained
    assert told.failure["code"] == "policy_refused"
    assert status_of(tenant, item) == "pending"


def test_a_viewer_sees_the_queue_and_is_refused_a_decision(
    service: Service, tenant: Tenant, buyer: Agent, tmp_path: Path
) -> None:
    item = waits(buyer)
    with closing(member(service, tenant, "viewer", mfa=True)) as viewer:
        desk = Desk(tmp_path, service.url)
        desk.take_session(viewer)
        answer = viewer.post(f"/approvals/{item}/deny", json={})
        refused = desk.run("approvals", "deny", item)
        listed = desk.ok("approvals", "list")

    assert [one["id"] for one in listed] == [item]
    assert (refused.status, refused.complained) == (1, f"custody: {answer.json()['error']}\n")
    assert status_of(tenant, item) == "pending"
