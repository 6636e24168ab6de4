"""Clients are made from the contract that there is: `scripts/sdk` would write what is committed."""

import json
import re
from typing import Any

from sdk import agent_contract, python_types, skill, typescript_types
from tests.outside.processes import PROJECT

CONTRACT: dict[str, Any] = json.loads((PROJECT / "openapi.json").read_text())
AGENT: dict[str, Any] = json.loads(agent_contract.WRITTEN.read_text())


def test_the_agents_part_is_what_make_sdk_cuts_from_the_contract() -> None:
    assert agent_contract.WRITTEN.read_text() == agent_contract.text_of(CONTRACT), "run `make sdk`"


def test_the_types_are_what_make_sdk_makes_of_the_agents_part() -> None:
    for made in (python_types, typescript_types):
        assert made.WRITTEN.read_text() == made.text_of(AGENT), "run `make sdk`"


def test_the_skill_is_what_make_sdk_makes_of_the_models_page() -> None:
    # tests/paths/test_llms_page.py sends the page's requests, which are the skill's.
    assert skill.WRITTEN.read_text() == skill.text_of(skill.PAGE.read_text()), "run `make sdk`"


def test_the_skill_says_by_one_plain_line_each_what_agents_choose_it_by() -> None:
    head, _, body = skill.WRITTEN.read_text().removeprefix("---\n").partition("\n---\n")
    said = dict(line.split(": ", 1) for line in head.splitlines())

    assert said.keys() == {"name", "description"}
    assert said["name"] == skill.WRITTEN.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", said["name"])
    # A colon and a space, or a quote in front, would be more than a line of YAML.
    assert re.fullmatch(r"\w[^\n#]{1,1023}", said["description"])
    assert ": " not in said["description"]
    assert body.startswith("\n# Custody\n")


def test_the_agents_part_has_every_operation_that_takes_its_token_alone() -> None:
    ids = {one["operationId"] for methods in AGENT["paths"].values() for one in methods.values()}

    assert {"signEvmTransaction", "payDemand", "withdrawTransaction", "getMe", "listCallableApis"} <= ids
    # They take somebody else's credential, take two, or are retired.
    assert not ids & {"createAgentToken", "approveItem", "getAction", "setTenantWebhook"}


def test_nothing_in_the_agents_part_refers_to_what_it_lacks() -> None:
    for reference in set(agent_contract.references(AGENT)):
        _, _, kind, name = reference.split("/")
        assert name in AGENT["components"][kind]


def test_a_field_that_changes_in_the_contract_changes_the_types() -> None:
    changed = json.loads(json.dumps(CONTRACT))
    changed["components"]["schemas"]["Withdrawn"]["properties"]["why"] = {"type": "string"}
    cut = agent_contract.cut(changed)

    assert cut != AGENT
    assert "why: NotRequired[str]" in python_types.text_of(cut)
    assert "why?: string;" in typescript_types.text_of(cut)


def test_a_second_name_of_a_field_and_examples_are_left_out() -> None:
    node = {
        "type": "object",
        "examples": [1],
        "properties": {"example": {"type": "string"}, "wallet_ids": {"x-service-same-as": "walletIds"}},
    }

    assert agent_contract.bare(node) == {"type": "object", "properties": {"example": {"type": "string"}}}


def test_a_field_that_no_class_can_name_is_typed_all_the_same() -> None:
    text = python_types.WRITTEN.read_text()

    assert '"from": "str | None"' in text
