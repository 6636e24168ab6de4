"""`custody policies` and `custody policy-sets`: rules as they are, and as a file would have them."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.approvers import approver, quorum
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Tenant, rule
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.terminal import basics, terminal

LIMIT = rule("spending-limit", maxPerDay="100")
LISTED = rule("approved-addresses", addresses=[ADDRESS])
ASKS = rule("auto-approve-threshold", threshold="10")


@pytest.fixture
def rules(desk: Desk, tenant: Tenant) -> list[dict[str, Any]]:
    """The rules of the agent `buyer`, as the service has them."""
    tenant.agent(LIMIT, LISTED, ASKS, agent_id="buyer")
    found: list[dict[str, Any]] = tenant.ok("GET", "/agents/buyer/policies")
    return found


def test_rules_are_read_in_words_and_as_a_file_that_changes_nothing(desk: Desk, rules: Any) -> None:
    said = desk.run("policies", "get", "buyer").said
    desk.write("rules.json", desk.ok("policies", "get", "buyer"))

    assert "at most 0.0000000000000001 coins (100 wei) on EVM chains in any 24 hours" in said
    assert desk.ok("policies", "diff", "buyer", "-f", "rules.json")["same"]
    assert desk.run("policies", "apply", "buyer", "-f", "rules.json").said.startswith("Nothing changes")


def test_a_file_without_ids_keeps_those_of_the_rules_that_it_means(desk: Desk, rules: Any) -> None:
    desk.write("rules.json", {"policies": [ASKS, rule("spending-limit", maxPerDay="90"), LISTED]})

    put = desk.ok("policies", "apply", "buyer", "-f", "rules.json", "--yes")

    assert {one["type"]: one["id"] for one in put} == {one["type"]: one["id"] for one in rules}
    assert desk.ok("policies", "diff", "buyer", "-f", "rules.json")["same"]


@pytest.mark.parametrize(
    ("draft", "looser"),
    [
        ([rule("spending-limit", maxPerDay="99"), LISTED, ASKS, rule("rate-limit", maxTxPerHour=3)], []),
        ([LIMIT, LISTED], ["Threshold for a person: removed."]),
        ([rule("spending-limit", maxPerDay="101"), LISTED, ASKS], ["(101 wei)", "was"]),
        ([LIMIT, rule("approved-addresses", addresses=[ADDRESS, OTHER_ADDRESS]), ASKS], [f"approves {OTHER_ADDRESS}"]),
    ],
    ids=["less", "removed", "more", "listed"],
)
def test_a_difference_names_what_becomes_looser(desk: Desk, rules: Any, draft: Any, looser: list[str]) -> None:
    desk.write("rules.json", draft)
    found = desk.ok("policies", "diff", "buyer", "-f", "rules.json")
    said = desk.run("policies", "diff", "buyer", "-f", "rules.json").said

    assert not found["same"]
    assert bool(found["looser"]) == bool(looser)
    assert all(any(part in one for one in found["looser"]) for part in looser)
    assert ("Becomes looser" in said) == bool(looser)
    assert ("Nothing becomes looser." in said) != bool(looser)


def test_rules_are_replaced_once_somebody_has_read_and_says_yes(desk: Desk, tenant: Tenant, rules: Any) -> None:
    agent = tenant.agents[0]
    agent.sign(value=50)
    desk.write("rules.json", [LIMIT, LISTED])
    refused = desk.run("policies", "apply", "buyer", "-f", "rules.json")
    with terminal(
        desk.command("policies", "apply", "buyer", "-f", "rules.json"), desk.home, desk.environment | basics()
    ) as window:
        window.sees("Becomes looser", "Threshold for a person: removed.", "1 that waited for a person would be SIGNED")
        window.sees("Replace the rules of agent buyer? [y/N]:")
        window.press("Enter")
        window.sees("Nothing was changed.")
        assert window.wait_for_end() == 1
    unchanged = tenant.ok("GET", "/agents/buyer/policies")
    put = desk.run("policies", "apply", "buyer", "-f", "rules.json", "--yes")

    assert (refused.status, refused.said) == (1, "")
    assert "Becomes looser" in refused.complained
    assert unchanged == rules
    assert put.said == "Agent buyer has 2 rules now.\n"
    assert [one["type"] for one in tenant.ok("GET", "/agents/buyer/policies")] == [
        "spending-limit",
        "approved-addresses",
    ]


def test_a_draft_is_tried_on_past_requests_in_words(desk: Desk, tenant: Tenant, rules: Any) -> None:
    agent = tenant.agents[0]
    agent.sign(value=5)
    agent.sign(value=20)
    agent.sign(value=30, to=OTHER_ADDRESS)
    desk.write("rules.json", [rule("spending-limit", maxPerTransaction="4"), rule("rate-limit", maxTxPerHour=9)])
    found = desk.ok("policies", "test", "buyer", "-f", "rules.json")
    said = desk.run("policies", "test", "buyer", "-f", "rules.json", "--days", "1", "--limit", "1").said
    desk.write("rules.json", rules)
    same = desk.run("policies", "test", "buyer", "-f", "rules.json").said

    assert [(one["was"], one["now"]) for one in found["changed"]] == [("queue", "refuse"), ("sign", "refuse")]
    assert "Of 3 requests of the last day, 2 would have been decided otherwise:" in said
    assert "1 that was signed would be refused" in said
    assert "✗ FAILED  spending-limit" in said
    assert "and 1 more: --limit shows more of them" in said
    assert same == "Of 3 requests of the last 7 days, none would have been decided otherwise.\n"


def test_rules_that_make_no_sense_are_refused_before_anybody_is_asked(desk: Desk, tenant: Tenant, rules: Any) -> None:
    desk.write("rules.json", [LIMIT, rule("rate-limit", maxTxPerHour=0)])
    ended = desk.run("policies", "apply", "buyer", "-f", "rules.json")
    told = desk.run("policies", "apply", "buyer", "-f", "rules.json", "--yes", "--json")

    assert (ended.status, told.status) == (1, 1)
    assert "maxTxPerHour" in ended.complained
    assert told.failure["code"] == "invalid_policy"
    assert tenant.ok("GET", "/agents/buyer/policies") == rules


def test_a_change_that_needs_votes_says_so(desk: Desk, tenant: Tenant, service: Service) -> None:
    one = approver(service, tenant)
    with closing(one.person) as admin:
        tenant.agent(LIMIT, agent_id="buyer")
        asking = admin.ok("PUT", "/agents/buyer/policies", [LIMIT, quorum(1, one, above="1000")])[1]
    desk.write("rules.json", [rule("spending-limit", maxPerDay="101"), asking])
    said = desk.run("policies", "diff", "buyer", "-f", "rules.json").said
    told = desk.ok("policies", "diff", "buyer", "-f", "rules.json")
    refused = desk.run("policies", "apply", "buyer", "-f", "rules.json", "--yes", "--json")
    desk.write("rules.json", [rule("spending-limit", maxPerDay="99"), asking])

    assert "These rules ask for votes" in said
    assert told["needsVotes"]
    assert refused.failure["code"] == "quorum_needed"
    # What only tightens needs none.
    assert not desk.ok("policies", "diff", "buyer", "-f", "rules.json")["needsVotes"]
    assert len(desk.ok("policies", "apply", "buyer", "-f", "rules.json", "--yes")) == 2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"[{", "neither YAML nor JSON"),
        (b"\xff\xfe", "is no UTF-8 text"),
        (b"{}", "has no rules"),
        (b'{"policies": {}}', "has no rules"),
        (b"[3]", "has no rules"),
        (b'[{"type": "rate-limit", "config": {}}]', "missing required field `enabled`"),
        (b"[" * 100_000, "deeper than 32 levels"),
        (b" " * (2**20 + 1), "is larger than 1 MiB"),
        (b'[{"type": "a", "type": "b"}]', "has the field `type` for the second time"),
        (b"- &a [*a]", "anchor"),
    ],
    ids=["broken", "no text", "an object", "no list", "a number", "half a rule", "deep", "long", "twice", "alias"],
)
def test_a_file_that_holds_no_rules_is_refused_by_name(desk: Desk, content: bytes, complaint: str) -> None:
    (desk.home / "rules.json").write_bytes(content)
    # The agent does not exist: nobody is asked.
    ended = desk.run("policies", "apply", "nobody", "-f", "rules.json", "--yes")

    assert (ended.status, ended.said) == (2, "")
    assert complaint in " ".join(ended.complained.split())


def test_a_file_without_an_end_is_not_read_to_it(desk: Desk) -> None:
    for file, complaint in (("/dev/zero", "larger than 1 MiB"), ("absent.json", "No such file"), (".", "directory")):
        ended = desk.run("policies", "diff", "nobody", "-f", file)

        assert ended.status == 2
        assert complaint in ended.complained


def test_rules_come_from_standard_input_too(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")
    put = desk.ok(
        "policies",
        "apply",
        "buyer",
        "-f",
        "-",
        "--yes",
        said='[{"type":"rate-limit","enabled":true,"config":{"maxTxPerDay":3}}]',
    )

    assert [one["config"] for one in put] == [{"maxTxPerDay": 3}]


def test_rules_are_read_as_yaml_too(desk: Desk, tenant: Tenant) -> None:
    tenant.agent(agent_id="buyer")
    text = "- {type: rate-limit, enabled: true, config: {maxTxPerDay: 3}}\n"
    limit = "- type: spending-limit\n  enabled: true\n  config:\n    maxPerDay: '100'  # wei\n"
    (desk.home / "rules.yaml").write_text(text + limit)
    put = desk.ok("policies", "apply", "buyer", "-f", "rules.yaml", "--yes")

    assert [one["config"] for one in put] == [{"maxTxPerDay": 3}, {"maxPerDay": "100"}]


def test_a_viewer_reads_rules_and_is_refused_another_set(service: Service, tenant: Tenant, tmp_path: Path) -> None:
    tenant.agent(LIMIT, agent_id="buyer")
    with closing(member(service, tenant, "viewer", mfa=True)) as viewer:
        desk = Desk(tmp_path, service.url)
        desk.take_session(viewer)
        desk.write("rules.json", [LISTED])
        answer = viewer.put("/agents/buyer/policies", json=[LISTED])
        refused = desk.run("policies", "apply", "buyer", "-f", "rules.json", "--yes")
        said = desk.run("policies", "get", "buyer").said

    assert "Spending limit" in said
    assert refused.status == 1
    assert refused.complained.endswith(f"custody: {answer.json()['error']}\n")


def test_a_policy_set_is_made_by_its_name_replaced_and_deleted(desk: Desk, tenant: Tenant) -> None:
    desk.write("set.json", {"name": "Treasury", "policies": [LIMIT]})
    asked = desk.run("policy-sets", "apply", "Treasury", "-f", "set.json")
    made = desk.ok("policy-sets", "apply", "Treasury", "-f", "set.json", "--yes")
    again = desk.run("policy-sets", "apply", "Treasury", "-f", "set.json")
    desk.write("set.json", [LIMIT, LISTED])
    put = desk.ok("policy-sets", "apply", made["id"], "-f", "set.json", "--name", "Vault", "--yes")
    of_all = desk.ok("policy-sets", "apply", "tenant", "-f", "set.json", "--name", "All", "--yes")

    assert 'There is no set "Treasury". Make it' in asked.complained
    assert again.said.startswith("Nothing changes")
    assert (put["id"], put["name"], len(put["policies"])) == (made["id"], "Vault", 2)
    assert of_all["id"] == "tenant"
    assert {one["id"] for one in desk.ok("policy-sets", "list")} == {made["id"], "tenant"}
    assert desk.ok("policy-sets", "get", "Vault")["id"] == made["id"]
    assert desk.ok("policy-sets", "delete", "Vault", "--yes") == {"deleted": made["id"]}
    assert desk.run("policy-sets", "get", "Vault").status == 1


def test_a_policy_set_says_whom_it_binds(desk: Desk, tenant: Tenant) -> None:
    desk.write("set.json", [rule("spending-limit", maxPerDay="100", scope="set")])
    made = desk.ok("policy-sets", "apply", "shared", "-f", "set.json", "--yes")
    tenant.agent(rule("policy-set", policySet=made["id"]), agent_id="buyer")
    desk.write("set.json", [rule("spending-limit", maxPerDay="200", scope="set")])
    said = desk.run("policy-sets", "get", "shared").said
    asked = desk.run("policy-sets", "apply", "shared", "-f", "set.json").complained
    kept = desk.run("policy-sets", "delete", "shared", "--yes", "--json")

    assert "counts what all agents of the set spend together" in said
    assert "binds 1 agent" in said
    assert "Becomes looser" in asked
    assert 'Replace the set "shared", which binds 1 agent?' in asked
    assert kept.failure["code"] == "policy_set_named"


def test_a_template_is_applied_after_the_same_questions(desk: Desk, tenant: Tenant, rules: Any) -> None:
    listed = desk.run("policies", "templates").said
    words = (
        "policies",
        "apply-template",
        "buyer",
        "known-recipients",
        "-F",
        f'policies[0].config.addresses=["{ADDRESS}"]',
    )
    refused = desk.run(*words)
    put = desk.ok(*words, "--yes")

    assert "known-recipients" in listed
    assert refused.status == 1
    assert "Becomes looser" in refused.complained
    assert [one["type"] for one in put] == ["approved-addresses", "spending-limit"]
    assert put == tenant.ok("GET", "/agents/buyer/policies")
    assert desk.run(*words).said.startswith("Nothing changes")
