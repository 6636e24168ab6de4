"""Intents in words, whatever stands in their payloads: what is paid is never shown as nothing, and nothing raises."""

from datetime import UTC, datetime
from typing import Any

import pytest

from console.intents.digest import digest_of, harmlessly
from console.intents.in_words import in_full
from console.rules.rule_terms import Names
from console.wire.shapes_intents import Intent
from custody.intents import payloads
from words.shapes import PolicyRule
from words.texts.lines import Line

TO = "0x" + "11" * 20
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = PolicyRule("spending-limit", True, {"maxPerDay": "5"}, "a")


def intent(kind: str, payload: dict[str, Any]) -> Intent:
    return Intent(
        id="i",
        intent_type=kind,
        agent_id="payer",
        payload=payload,
        digest="0" * 64,
        status="pending",
        expires_at="2026-01-02T00:00:00Z",
        created_at="2026-01-01T00:00:00Z",
        created_by="tenant_key:x",
        created_by_display_name=None,
        authorized_by=None,
        authorized_at=None,
        reason=None,
        policy_results=None,
        execution_result=None,
    )


def lines_of(kind: str, payload: dict[str, Any], rules: list[PolicyRule] | None = None) -> list[Line]:
    return in_full(intent(kind, payload), "payer", rules, Names(), None, NOW)


def words(lines: list[Line]) -> str:
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize("name", ["value", "amountWei"])
def test_an_amount_counts_by_either_name(name: str) -> None:
    lines = lines_of("wallet_action", {"action": "transfer", "to": TO, "chainId": 1, name: "5000000000000000000"})

    assert "5 ETH (5,000,000,000,000,000,000 wei)" in words(lines)
    assert [line for line in lines if line.tone == "bad"] == []


@pytest.mark.parametrize("amount", [None, "", "1e18", -1, ["1"], "0x5"])
def test_an_amount_that_cannot_be_read_is_a_danger(amount: object) -> None:
    lines = lines_of("transfer", {"to": TO, "chainId": 1, "value": amount})

    assert any(line.tone == "bad" and "cannot be read" in line.text for line in lines)


def test_an_unlimited_permission_is_a_danger_in_a_batch_too() -> None:
    approve = "0x095ea7b3" + f"{int(TO, 16):064x}" + "f" * 64
    lines = lines_of("wallet_action", {"action": "send_calls", "chainId": 1, "calls": [{"to": TO, "data": approve}]})

    assert any(line.tone == "bad" and f"Lets {TO} spend UNLIMITED" in line.text for line in lines)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"ruleId": "a"},
        {"ruleId": "a", "patch": "x"},
        {"ruleId": "a", "patch": {"config": 7}},
        {"ruleId": "none", "patch": {}},
        {"ruleId": ["a"], "rule": {"type": 1}},
    ],
    ids=str,
)
def test_a_change_that_fits_no_rule_is_said_so(payload: dict[str, Any]) -> None:
    lines = lines_of("policy_rule_update", payload, [LIMIT])

    assert "executed, it fails" in words(lines)


def test_without_the_rules_of_now_the_change_stands_as_it_was_sent() -> None:
    lines = lines_of("policy_rule_delete", {"ruleId": "the only limit"})

    assert "the only limit" in words(lines)
    assert any(line.tone == "bad" for line in lines)


def test_a_patch_changes_some_fields_of_a_config() -> None:
    lines = lines_of("policy_rule_update", {"ruleId": "a", "patch": {"config": {"maxPerWeek": "9"}}}, [LIMIT])
    becomes = words(lines).partition("Becomes")[2]

    assert "5" in becomes
    assert "9" in becomes


def test_the_digest_is_the_services_own_and_is_over_what_is_shown() -> None:
    payload = {"to": TO, "value": "1", "note": "a\u202eb", "chainId": 1}
    one = intent("transfer", payload)

    text = '{"chainId":1,"note":"a\u202eb","to":"' + TO + '","value":"1"}'
    assert digest_of(one) == payloads.digest_of("transfer", text).hex()
    assert harmlessly(one).payload["note"] == "a<U+202E>b"
