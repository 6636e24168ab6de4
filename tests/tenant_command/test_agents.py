"""`custody agents`: those for whom the tenant keeps keys."""

import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.terminal import basics, terminal


def test_an_agent_is_made_with_its_rules_or_not_at_all(desk: Desk, tenant: Tenant) -> None:
    desk.write("rules.json", [rule("rate-limit", maxTxPerHour=3)])
    words = ("--name", "Buys paper", "--platform-id", "p-1", "--policies", "rules.json")
    made = desk.ok("agents", "create", "buyer", *words)
    again = desk.run("agents", "create", "buyer", *words)
    desk.write("rules.json", [rule("rate-limit", maxTxPerHour=0)])
    refused = desk.run("agents", "create", "other", "--policies", "rules.json", "--json")

    assert (made["id"], made["name"], made["platformId"]) == ("buyer", "Buys paper", "p-1")
    assert [one["type"] for one in tenant.ok("GET", "/agents/buyer/policies")] == ["rate-limit"]
    assert refused.failure["code"] == "invalid_policy"
    assert again.status == 1
    assert [one["id"] for one in desk.ok("agents", "list")] == ["buyer"]


def test_an_agent_without_rules_comes_with_a_warning(desk: Desk) -> None:
    ended = desk.run("agents", "create", "buyer")

    assert ended.status == 0
    assert ended.said.startswith("Made agent buyer.\nEVM      0x")
    assert "custody policies apply" in ended.complained


def test_a_list_goes_over_all_pages_or_ends_where_it_is_told(desk: Desk, tenant: Tenant) -> None:
    for name in ("one", "two", "three"):
        tenant.agent(agent_id=name)
    tenant.ok("PATCH", "/agents/two", {"platformId": "p-2"})

    assert [one["id"] for one in desk.ok("agents", "list")] == ["three", "two", "one"]
    assert [one["id"] for one in desk.ok("agents", "list", "--limit", "2")] == ["three", "two"]
    assert [one["id"] for one in desk.ok("agents", "list", "--platform-id", "p-2")] == ["two"]
    assert desk.run("agents", "list", "--limit", "0").status == 2


def test_a_pipe_gets_a_line_for_each_agent_with_tabs(desk: Desk, tenant: Tenant) -> None:
    agent = tenant.agent(agent_id="buyer")
    tenant.ok("POST", "/agents/buyer/freeze", {"reason": "two\nlines\tand \x1b[31mred"})
    [line] = desk.run("agents", "list").said.splitlines()

    assert line.split("\t")[2:4] == ["FROZEN: two\\nlines\\tand \\x1b[31mred", agent.evm_address]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_gets_a_table_in_which_no_word_is_broken(desk: Desk, tenant: Tenant, columns: int) -> None:
    tenant.agent(agent_id="an-agent-with-a-long-id")
    tenant.ok("PATCH", "/agents/an-agent-with-a-long-id", {"name": "turned \u202eround"})
    tenant.ok("POST", "/agents/an-agent-with-a-long-id/freeze", {"reason": "\x1b[2J and more of it"})
    with terminal(desk.command("agents", "list"), desk.home, desk.environment | basics(), (columns, 20)) as window:
        seen = window.sees("an-agent-with-a-long-id", "<U+202E>round", "\\x1b[2J", "the program ended")

    assert seen.startswith("AGENT NAME STATE EVM ADDRESS MADE")


def test_one_agent_is_shown_with_its_rules_and_what_it_did(desk: Desk, tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"), agent_id="buyer")
    agent.sign(value=7)
    said = desk.run("agents", "show", "buyer").said

    assert agent.evm_address in said
    assert "1. Spending limit: enabled, hard: refuses" in said
    assert "signed: 0.000000000000000007 ETH (7 wei)" in said
    assert desk.ok("agents", "show", "buyer")["walletAddresses"]["evm"] == agent.evm_address


def test_a_token_is_printed_once_or_written_for_its_owner_alone(desk: Desk, tenant: Tenant, service: Service) -> None:
    tenant.agent(agent_id="buyer")
    printed = desk.run("agents", "token", "buyer").said.strip()
    told = desk.ok("agents", "token", "buyer", "--expires-in", "90s", "--to", "buyer.token")
    file = desk.home / "buyer.token"
    written = file.read_text().strip()

    for token in (printed, written):
        with Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}) as agent:
            assert agent.ok("GET", "/agents/buyer")["id"] == "buyer"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (told["expiresIn"], told["file"], "token" in told) == ("90s", "buyer.token", False)

    desk.ok("agents", "revoke-tokens", "buyer")
    with Client(base_url=service.url, headers={"Authorization": f"Bearer {written}"}) as agent:
        # What was good a moment ago is believed for a second.
        eventually(lambda: agent.get("/agents/buyer").status_code, 401)


@pytest.mark.parametrize("file", [".", "absent/buyer.token"])
def test_no_token_is_minted_that_could_not_be_written(desk: Desk, tenant: Tenant, file: str) -> None:
    ended = desk.run("agents", "token", "buyer", "--to", file)

    # There is no such agent: nobody was asked.
    assert (ended.status, ended.said) == (2, "")
    assert "cannot be written" in ended.complained


def test_a_person_freezes_and_unfreezes_with_the_factor_shown(service: Service, tenant: Tenant, tmp_path: Path) -> None:
    tenant.agent(agent_id="buyer")
    with closing(member(service, tenant, "owner", mfa=True)) as owner:
        desk = Desk(tmp_path, service.url)
        desk.take_session(owner)
        frozen = desk.ok("agents", "freeze", "buyer", "--reason", "Lost")
        listed = desk.run("agents", "list").said
        desk.ok("agents", "unfreeze", "buyer")

    assert frozen["reason"] == "Lost"
    assert "FROZEN: Lost" in listed
    assert tenant.ok("GET", "/agents/buyer")["frozenAt"] is None


def test_a_key_cannot_unfreeze_and_is_told_so_by_the_service(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")
    desk.ok("agents", "freeze", "buyer")

    assert desk.run("agents", "unfreeze", "buyer", "--json").failure["code"] == "wrong_kind"
    assert desk.ok("agents", "show", "buyer")["frozenAt"] is not None


def test_an_agent_is_renamed_and_deleted_once_somebody_says_yes(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")

    assert desk.ok("agents", "rename", "buyer", "Buys ink")["name"] == "Buys ink"
    refused = desk.run("agents", "delete", "buyer")
    assert (refused.status, refused.said) == (1, "")
    assert "Nobody can be asked here; say it with --yes." in refused.complained
    assert desk.ok("agents", "show", "buyer")["name"] == "Buys ink"
    assert desk.ok("agents", "delete", "buyer", "--yes") == {"deleted": "buyer"}
    assert desk.ok("agents", "list") == []


def test_an_agent_that_is_typed_stays_one_part_of_the_path(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")
    # Sent as it stands this would be another route.
    ended = desk.run("agents", "show", "buyer/policies", "--json")

    assert ended.status == 1
    assert ended.failure["code"] in ("agent_absent", "bad_path", "no_such_route")


def test_a_viewer_reads_and_is_refused_what_changes_with_the_services_sentence(
    service: Service, tenant: Tenant, tmp_path: Path
) -> None:
    tenant.agent(agent_id="buyer")
    with closing(member(service, tenant, "viewer", mfa=True)) as viewer:
        desk = Desk(tmp_path, service.url)
        desk.take_session(viewer)
        answer = viewer.post("/agents", json={"id": "other", "name": "other"})
        refused = desk.run("agents", "create", "other")
        listed = desk.ok("agents", "list")

    assert [one["id"] for one in listed] == ["buyer"]
    assert (refused.status, refused.said) == (1, "")
    assert refused.complained == f"custody: {answer.json()['error']}\n"


def test_members_are_listed_for_an_admin_with_a_factor(service: Service, tenant: Tenant, tmp_path: Path) -> None:
    with (
        closing(member(service, tenant, "viewer")) as viewer,
        closing(member(service, tenant, "admin", mfa=True)) as one,
    ):
        desk = Desk(tmp_path, service.url)
        desk.take_session(one)
        found = desk.ok("members", "list")
        newest = desk.ok("members", "list", "--limit", "1")
        lines = desk.run("members", "list").said.splitlines()

    assert [(who["userId"], who["role"]) for who in found] == [(one.id, "admin"), (viewer.id, "viewer")]
    assert [who["userId"] for who in newest] == [one.id]
    assert [line.split("\t")[2] for line in lines] == ["admin", "viewer"]


def test_members_are_not_listed_for_a_key_or_without_the_factor(
    desk: Desk, careful_desk: Desk, careful: Person, tenant: Tenant
) -> None:
    tenant.agent()

    assert desk.run("members", "list").status == 1
    assert careful_desk.run("members", "list", "--json").failure["code"] == "mfa_required"
