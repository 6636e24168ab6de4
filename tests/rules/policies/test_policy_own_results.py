"""The evaluation's own results, rule by rule: they give way neither to another failure nor to an approval."""

import msgspec
import pytest

from custody.chains.message_effects import subject_of
from custody.chains.message_orders import EvmMessageOrder
from custody.chains.message_reading import read
from custody.chains.types import Call, Effect, Subject
from custody.policies.judge import judge
from custody.policies.moved import limitless
from custody.policies.types import Result
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
)

RATE = rule("rate-limit", {"maxTxPerHour": 1})
ASKS = rule("auto-approve-threshold", {"threshold": "0", "asset": TOKEN})
UNBOUNDED = (
    "a token transfer needs an enabled contract-allowlist that lists the token's transfer (0xa9059cbb) with "
    "`maxAmount` and with `recipientAllowlist` or `recipientBlocklist`"
)
UNVOUCHED = "calldata in a batch needs an enabled contract-allowlist that lists each call"


def listing(*selectors, **constraint):
    constraints = {TRANSFER: constraint} if constraint else {}
    entry = {"address": TOKEN_CONTRACT, "selectors": list(selectors), "constraints": constraints}
    return rule("contract-allowlist", {"contracts": [entry]})


CONFINED = listing(TRANSFER, APPROVE, maxAmount="9", recipientAllowlist=[ALICE])
BOUNDED = msgspec.structs.replace(token_call(5), bounded=True)


def own(verdict):
    return [one for one in verdict.results if one.policy_id is None]


def with_another_call(order: Subject) -> Subject:
    """The same beside a call that is listed, and whose amount and recipients nothing confines."""
    call = Call(1, TOKEN_CONTRACT, APPROVE, spender=ALICE, amount=5, decoded=True)
    effect = Effect("approval", TOKEN, 5, BOB, spender=ALICE, call=call)
    return msgspec.structs.replace(order, effects=(*order.effects, effect), calls=(*order.calls, call))


def test_every_call_of_a_bounded_order_must_be_confined():
    assert judge(rules(CONFINED), BOUNDED, facts()).decision == "sign"
    for order in (with_another_call(BOUNDED), msgspec.structs.replace(BOUNDED, calls=with_another_call(BOUNDED).calls)):
        verdict = judge(rules(CONFINED), order, facts())
        assert verdict.decision == "refuse"
        assert own(verdict)[0] == Result("contract-allowlist", False, UNBOUNDED)


@pytest.mark.parametrize("set_", [[], [RATE], [ASKS], [ASKS, listing(TRANSFER)]])
@pytest.mark.parametrize("approving", [False, True])
def test_a_bounded_order_is_refused_whatever_else_asks(set_, approving):
    verdict = judge(rules(*set_), BOUNDED, facts(approving=approving))

    assert verdict.decision == "refuse"
    assert own(verdict)[0] == Result("contract-allowlist", False, UNBOUNDED)


@pytest.mark.parametrize("set_", [[], [RATE], [ASKS]])
@pytest.mark.parametrize("approving", [False, True])
def test_an_unlisted_call_of_a_batch_is_refused_whatever_else_asks(set_, approving):
    order = msgspec.structs.replace(token_call(5), vouched="refuse")

    verdict = judge(rules(*set_), order, facts(approving=approving))

    assert verdict.decision == "refuse"
    assert own(verdict)[0] == Result("contract-allowlist", False, UNVOUCHED)


def test_an_order_that_must_name_a_listed_network_is_refused_without_a_rule_that_does():
    order = msgspec.structs.replace(native(5), listed=True)

    for set_ in ([], [RATE], [rule("allowed-chains", {"chains": [1]}, enabled=False)]):
        verdict = judge(rules(*set_), order, facts(approving=True))
        reason = "a evm order needs an enabled allowed-chains rule that lists its network, eip155:1"
        assert (verdict.decision, own(verdict)[0]) == ("refuse", Result("allowed-chains", False, reason))
    assert judge(rules(rule("allowed-chains", {"chains": [1]})), order, facts()).decision == "sign"


def test_an_agent_without_a_hard_rule_is_told_so():
    reason = "the agent has no enabled hard rule, and this deployment demands one"

    verdict = judge(rules(ASKS), native(5), facts(empty_policy="deny", approving=True))

    assert (verdict.decision, own(verdict)[0]) == ("refuse", Result("empty-policy", False, reason))


def message(text="hello"):
    return subject_of(EvmMessageOrder(text, None), read("evm", text, None), BOB, 1, "eip155:1")


@pytest.mark.parametrize(
    ("set_", "known", "decision", "said"),
    [
        ([ASKS], {}, "queue", "a person must approve it"),
        ([ASKS], {"uncovered": "allow"}, "queue", "a person must approve it"),
        ([ASKS], {"approving": True}, "sign", "a person approved it"),
        ([ASKS], {"uncovered": "refuse"}, "refuse", "this tenant refuses that"),
        # What the tenant refuses no person approves.
        ([ASKS], {"uncovered": "refuse", "approving": True}, "refuse", "this tenant refuses that"),
        ([ASKS, rule("message-allowlist", {})], {"uncovered": "refuse"}, "refuse", "this tenant refuses that"),
    ],
)
def test_a_message_that_no_list_names_asks_where_anything_is_limited(set_, known, decision, said):
    verdict = judge(rules(*set_), message(), facts(**known))

    passed = decision == "sign"
    reason = f"no enabled message-allowlist lists the message; {said}"
    assert (verdict.decision, own(verdict)) == (decision, [Result("message-allowlist", passed, reason)])


def test_a_rule_for_messages_that_asks_is_not_repeated():
    verdict = judge(rules(ASKS, rule("message-allowlist", {})), message(), facts())

    assert (verdict.decision, own(verdict)) == ("queue", [])


def test_an_order_that_more_than_the_rate_refuses_may_not_come_again_as_it_is():
    too_many = facts(orders_last_hour=1, uncovered="refuse")
    covered, not_covered = ([RATE, rule("spending-limit", {"maxPerDay": "9"})], [RATE, ASKS])

    assert judge(rules(*covered), native(5), too_many).room is not None
    assert judge(rules(*not_covered), native(5), too_many).room is None
    asked = judge(rules(*not_covered), native(5), facts(orders_last_hour=1))
    assert (asked.decision, asked.room is None) == ("refuse", False)


@pytest.mark.parametrize("unlimited", [False, True])
def test_an_approval_is_limitless_by_its_amount_or_by_what_is_said_of_it(unlimited):
    def approval(amount, said=unlimited):
        return Effect("approval", TOKEN, amount, BOB, spender=ALICE, unlimited=said)

    assert limitless(approval(2**128))
    assert limitless(approval(5)) is unlimited
    assert limitless(approval(2**128 - 1)) is unlimited
    limited = rules(rule("spending-limit", {"maxPerDay": str(2**130), "asset": TOKEN}))
    assert judge(limited, evm(approval(2**128)), facts(uncovered="allow")).decision == "queue"
