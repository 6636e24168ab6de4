"""A batch of calls: calldata goes out only where a rule lists the call, unless the deployment lets a person decide."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.types import Call, Subject
from custody.policies.judge import judge
from tests.rules.policies.makers import (
    ALICE,
    APPROVE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    TRANSFER,
    evm,
    facts,
    native,
    rule,
    rules,
    token_call,
    unread_call,
)

UNLISTED = "calldata in a batch needs an enabled contract-allowlist that lists each call"
COIN_LIMIT = rule("spending-limit", {"maxPerDay": "1000"})
TOKEN_LIMIT = rule("spending-limit", {"maxPerDay": "1000", "asset": TOKEN})


def listing(*selectors, **more):
    entry = {"address": TOKEN_CONTRACT, "selectors": list(selectors)}
    return rule("contract-allowlist", {"contracts": [entry]}, **more)


def batch(*parts: Subject, vouched="refuse") -> Subject:
    """The parts as they are judged together."""
    effects = [effect for part in parts for effect in part.effects]
    calls = tuple(call for part in parts for call in part.calls)
    return msgspec.structs.replace(evm(*effects, calls=calls, destination=None), parts=parts, vouched=vouched)


def results_of_lists(verdict):
    """Return what the evaluation itself says of lists."""
    return [
        (one.passed, one.reason) for one in verdict.results if one.type == "contract-allowlist" and not one.policy_id
    ]


def test_a_batch_of_listed_calls_is_signed():
    verdict = judge(rules(TOKEN_LIMIT, listing(TRANSFER)), batch(token_call(5), token_call(7)), facts())

    assert verdict.decision == "sign"
    assert results_of_lists(verdict) == []


def test_a_batch_without_calldata_needs_no_list():
    verdict = judge(rules(COIN_LIMIT), batch(native(5), native(6, to=BOB)), facts())

    assert verdict.decision == "sign"
    assert results_of_lists(verdict) == []


@pytest.mark.parametrize("set_", [[], [TOKEN_LIMIT], [COIN_LIMIT, TOKEN_LIMIT]])
def test_without_a_list_calldata_is_refused(set_):
    verdict = judge(rules(*set_), batch(token_call(5)), facts())

    assert verdict.decision == "refuse"
    assert results_of_lists(verdict) == [(False, UNLISTED)]


def test_a_disabled_list_lists_nothing():
    verdict = judge(rules(TOKEN_LIMIT, listing(TRANSFER, enabled=False)), batch(token_call(5)), facts())

    assert (verdict.decision, results_of_lists(verdict)) == ("refuse", [(False, UNLISTED)])


def test_a_list_that_failed_has_said_so_already():
    verdict = judge(rules(TOKEN_LIMIT, listing(APPROVE)), batch(token_call(5)), facts())

    assert verdict.decision == "refuse"
    assert results_of_lists(verdict) == []


def test_a_person_may_let_an_unlisted_call_pass_where_the_deployment_allows_it():
    set_, order = rules(TOKEN_LIMIT), batch(token_call(5), vouched="queue")

    waits = judge(set_, order, facts())
    assert waits.decision == "queue"
    assert results_of_lists(waits) == [(False, "a call of the batch is on no list; a person must approve it")]

    approved = judge(set_, order, facts(approving=True))
    assert approved.decision == "sign"
    assert results_of_lists(approved) == [(True, "a call of the batch is on no list; a person approved it")]


def test_no_approval_lets_an_unlisted_call_pass_where_the_deployment_does_not():
    verdict = judge(rules(TOKEN_LIMIT), batch(token_call(5)), facts(approving=True))

    assert (verdict.decision, results_of_lists(verdict)) == ("refuse", [(False, UNLISTED)])


def test_an_approval_lets_no_call_pass_that_a_list_refuses():
    order = batch(token_call(5), vouched="queue")

    assert judge(rules(TOKEN_LIMIT, listing(APPROVE)), order, facts(approving=True)).decision == "refuse"


def test_a_single_order_needs_no_list():
    assert token_call(5).vouched is None
    assert judge(rules(TOKEN_LIMIT), token_call(5), facts()).decision == "sign"


ENTRIES = [
    {"address": TOKEN_CONTRACT, "selectors": [TRANSFER]},
    {"address": TOKEN_CONTRACT, "selectors": [APPROVE]},
    {"address": TOKEN_CONTRACT, "selectors": [TRANSFER], "chainId": 10},
    {"address": TOKEN_CONTRACT, "selectors": [TRANSFER], "constraints": {TRANSFER: {"maxAmount": "5"}}},
    {"address": BOB, "selectors": [TRANSFER]},
]
PARTS = [native(5), token_call(5), token_call(6), unread_call(), unread_call(contract=ALICE)]


def _key(entry):
    """A list has a selector of a contract once."""
    return entry["address"], *entry["selectors"]


def permits(call: Call, entries) -> bool:
    """By another reading of the entries than the rule's own."""
    return any(
        (entry["address"], entry.get("chainId", call.chain_id)) == (call.contract, call.chain_id)
        and call.selector in entry["selectors"]
        and (call.amount or 0) <= int(entry.get("constraints", {}).get(call.selector, {}).get("maxAmount", 2**256))
        for entry in entries
    )


@given(
    entries=st.lists(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=2, unique_by=_key), max_size=2),
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    vouched=st.sampled_from(("refuse", "queue")),
    approving=st.booleans(),
    uncovered=st.sampled_from(("queue", "allow", "refuse")),
)
def test_a_batch_is_signed_unasked_only_if_every_call_is_listed(entries, parts, vouched, approving, uncovered):
    """Every list must let every call pass, so two lists leave what both have."""
    set_ = rules(*(rule("contract-allowlist", {"contracts": listed}) for listed in entries))
    order, known = batch(*parts, vouched=vouched), facts(approving=approving, uncovered=uncovered)

    decision = judge(set_, order, known).decision

    everything = all(any(permits(call, listed) for listed in entries) for call in order.calls)
    if decision == "sign" and not approving:
        assert everything
    if decision == "sign" and vouched == "refuse":
        assert everything
    if not entries and order.calls:
        assert decision == ("refuse" if vouched == "refuse" else "sign" if approving else "queue")
