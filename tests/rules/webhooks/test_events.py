"""The payloads of events: one struct a name, and the page lists their fields."""

import re
from pathlib import Path

import msgspec
import pytest

from api.http.contract.events import PAYLOADS, payloads
from custody.policies.types import Result
from custody.webhooks import events
from custody.webhooks.events import MAX_EFFECTS, MAX_EFFECTS_BYTES, OrderEvent, PolicyViolation, SpendThreshold, clip
from custody.webhooks.later_events import TxDenied
from custody.webhooks.payload import encode_events

PAGE = (Path(__file__).parents[3] / "docs/webhooks.md").read_text()


def test_an_event_without_a_payload_is_refused_at_the_start() -> None:
    with pytest.raises(TypeError, match=r"user\.unlinked_account"):
        payloads(events)


def names(payload: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(payload)]


def section(title: str) -> str:
    return PAGE.split(f"### {title}\n")[1].split("\n#")[0]


def test_the_page_lists_the_fields_of_each_payload() -> None:
    said = {
        name: re.findall(r"[a-zA-Z]+", re.sub(r"\([^)]*\)", "", fields))
        for name, fields in re.findall(r"^\| `([a-z_.]+)` \|[^|]*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    }

    common = names(OrderEvent)
    fields = {
        payload.event: names(payload)[len(common) if issubclass(payload, OrderEvent) else 0 :] for payload in PAYLOADS
    }
    assert {name: said[name] for name in fields} == fields
    rows = re.findall(r"^\| (`.+?`) \|", section("Fields of every `tx.` event"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == common


def test_an_emitted_event_has_name_payload_and_mark() -> None:
    failed = Result("spend-limit", False, "Too much.", "r1")
    violation = PolicyViolation(tx_id="t", to=None, value="5", failed_policies=[failed])
    denied = TxDenied(
        approval_id="a",
        tx_id="t",
        kind="evm",
        to="0x",
        value="5",
        chain_id=1,
        reference_id=None,
        effects=[],
        more_effects=0,
        reason="expired",
        resolved_by="system",
    )

    assert msgspec.json.decode(encode_events(violation, mark="m")) == [
        {
            "event": "policy.violation",
            "data": {
                "txId": "t",
                "to": None,
                "value": "5",
                "failedPolicies": [
                    {"type": "spend-limit", "passed": False, "reason": "Too much.", "policyId": "r1"},
                ],
            },
            "mark": "m",
        }
    ]
    assert msgspec.json.decode(encode_events(denied)) == [
        {
            "event": "tx.denied",
            "data": {
                "txId": "t",
                "kind": "evm",
                "to": "0x",
                "value": "5",
                "chainId": 1,
                "referenceId": None,
                "effects": [],
                "moreEffects": 0,
                "approvalId": "a",
                "reason": "expired",
                "resolvedBy": "system",
            },
        }
    ]


def test_several_events_keep_their_order() -> None:
    threshold = SpendThreshold(window="day", asset="eth", spent="8", limit="10", percent=80, tx_id="t")

    assert [one["event"] for one in msgspec.json.decode(encode_events(threshold, threshold))] == ["spend.threshold"] * 2


def test_an_event_carries_the_first_effects_and_counts_the_others() -> None:
    effects = [{"kind": "transfer", "amount": str(number)} for number in range(MAX_EFFECTS + 5)]

    assert clip(effects[:MAX_EFFECTS]) == (effects[:MAX_EFFECTS], 0)
    assert clip(effects) == (effects[:MAX_EFFECTS], 5)


def test_long_names_in_effects_do_not_make_a_long_event() -> None:
    long = {"kind": "unread", "label": "x" * 3000}

    assert clip([long] * 4) == ([long] * 2, 2)
    assert clip([{"kind": "unread", "label": "x" * MAX_EFFECTS_BYTES}]) == ([], 1)
