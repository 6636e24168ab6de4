"""The judge: hard before soft, what nobody covers goes to a person, empty sets."""

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect
from custody.policies.judge import judge
from tests.rules.policies.makers import (
    APPROVE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    TRANSFER,
    UNKNOWN,
    approval_call,
    evm,
    facts,
    native,
    permit,
    rent,
    rule,
    rules,
    token_call,
    typed_data,
    unknown,
    unread_call,
)

NATIVE_LIMIT = rule("spending-limit", {"maxPerDay": "1000"})
TOKEN_LIMIT = rule("spending-limit", {"maxPerDay": "1000", "asset": TOKEN})
NFT = evm(Effect("transfer", TOKEN, 1, BOB, BOB, nft=True))


def listing(selector, **constraint):
    entry = {"address": TOKEN_CONTRACT, "selectors": [selector], "constraints": {selector: constraint}}
    return rule("contract-allowlist", {"contracts": [entry]})


def trusting(selector):
    """A list that lets pass what nobody can read of the contract."""
    entry = {"address": TOKEN_CONTRACT, "selectors": [selector], "unread": "allow"}
    return rule("contract-allowlist", {"contracts": [entry]})


def test_a_hard_rule_refuses_although_an_earlier_soft_one_queues():
    set_ = rules(rule("auto-approve-threshold", {"threshold": "1"}), rule("spending-limit", {"maxPerTx": "5"}))

    verdict = judge(set_, native(6), facts())

    assert verdict.decision == "refuse"
    assert [(result.type, result.passed) for result in verdict.results] == [
        ("auto-approve-threshold", False),
        ("spending-limit", False),
    ]


def test_results_stand_in_stored_order_and_disabled_rules_are_silent():
    off = rule("spending-limit", {"maxPerTx": "1"}, enabled=False, id="off")
    set_ = rules(rule("rate-limit", {"maxTxPerDay": 9}, id="r"), off, rule("allowed-chains", {"chains": [1]}, id="c"))

    verdict = judge(set_, native(6), facts())

    assert verdict.decision == "sign"
    assert [result.policy_id for result in verdict.results] == ["r", "c"]


def test_a_result_is_sent_with_its_policy_id_and_a_synthetic_one_with_null():
    results = judge(rules(NATIVE_LIMIT), unread_call(), facts()).results

    sent = msgspec.to_builtins(results)

    assert set(sent[0]) == {"type", "passed", "reason", "policyId"}
    assert (set(sent[1]), sent[1]["policyId"]) == (set(sent[0]), None)


@pytest.mark.parametrize(
    ("set_", "order"),
    [
        ([NATIVE_LIMIT], token_call(5)),
        ([NATIVE_LIMIT], approval_call(0)),
        ([NATIVE_LIMIT], unread_call()),
        ([NATIVE_LIMIT], permit(5)),
        ([NATIVE_LIMIT], typed_data(Effect("unread", None, 0))),
        ([NATIVE_LIMIT], unknown()),
        ([NATIVE_LIMIT], unknown(contract=None)),
        ([rule("auto-approve-threshold", {"threshold": "9"})], unknown()),
        ([rule("approved-addresses", {"addresses": [TOKEN_CONTRACT]})], unknown()),
        ([rule("approved-addresses", {"addresses": [BOB]})], unknown(contract=None)),
        ([rule("approved-addresses", {"addresses": [BOB], "mode": "blacklist"})], unknown()),
        ([TOKEN_LIMIT, listing(TRANSFER)], unknown()),
        ([TOKEN_LIMIT, listing(TRANSFER)], unknown(chain_id=None)),
        ([NATIVE_LIMIT], NFT),
        ([TOKEN_LIMIT], native(5)),
        ([TOKEN_LIMIT], NFT),
        ([TOKEN_LIMIT], approval_call(2**128)),
        ([TOKEN_LIMIT], permit(2**128)),
        ([rule("auto-approve-threshold", {"threshold": "9"})], token_call(5)),
        ([NATIVE_LIMIT, listing(TRANSFER)], token_call(5)),
        ([NATIVE_LIMIT, listing(APPROVE, maxAmount=str(2**200))], approval_call(2**128)),
        ([TOKEN_LIMIT, listing(UNKNOWN)], unread_call(value=5)),
        ([NATIVE_LIMIT, listing(UNKNOWN)], unread_call(value=5)),
        ([NATIVE_LIMIT, listing(TRANSFER)], unknown()),
        ([rule("approved-addresses", {"addresses": [BOB]}), listing(TRANSFER)], unknown()),
    ],
)
def test_an_order_that_no_rule_covers_needs_approval(set_, order):
    verdict = judge(rules(*set_), order, facts())

    assert verdict.decision == "queue"
    assert verdict.results[-1].type == "uncovered-effect"
    assert verdict.results[-1].reason.endswith("a person must approve it")


@pytest.mark.parametrize(
    ("set_", "order"),
    [
        ([NATIVE_LIMIT], native(5)),
        ([rule("auto-approve-threshold", {"threshold": "9"})], native(5)),
        ([TOKEN_LIMIT], token_call(5)),
        ([TOKEN_LIMIT], permit(5)),
        ([TOKEN_LIMIT], native(0)),
        ([NATIVE_LIMIT], permit(0)),
        ([NATIVE_LIMIT], typed_data()),
        ([NATIVE_LIMIT, listing(TRANSFER, maxAmount="5")], token_call(5)),
        ([NATIVE_LIMIT, trusting(UNKNOWN)], unread_call(value=5)),
        ([NATIVE_LIMIT, trusting(TRANSFER)], unknown()),
        ([rule("rate-limit", {"maxTxPerDay": 9})], unknown()),
        ([rule("approved-addresses", {"addresses": [BOB]}, enabled=False)], unknown()),
        ([rule("rate-limit", {"maxTxPerDay": 9})], unread_call()),
        ([], approval_call(2**128)),
    ],
)
def test_an_order_that_a_rule_covers_needs_no_approval(set_, order):
    verdict = judge(rules(*set_), order, facts())

    assert verdict.decision == "sign"
    assert all(result.type != "uncovered-effect" for result in verdict.results)


@pytest.mark.parametrize(("config", "decision"), [("allow", "sign"), ("queue", "queue"), ("refuse", "refuse")])
def test_the_tenant_says_what_becomes_of_typed_data_of_an_unknown_kind(config, decision):
    verdict = judge(rules(NATIVE_LIMIT), unknown(), facts(uncovered=config))

    assert verdict.decision == decision
    assert "typed data of an unknown kind" in verdict.results[-1].reason


def test_a_person_may_approve_typed_data_of_an_unknown_kind():
    limited = rules(NATIVE_LIMIT, rule("approved-addresses", {"addresses": [BOB]}))

    assert judge(limited, unknown(), facts(approving=True)).decision == "sign"


def test_rent_needs_cover_like_a_payment():
    mint = "solana:So11111111111111111111111111111111111111112"
    limited = rules(rule("spending-limit", {"maxPerDay": "9", "asset": mint}))
    gift = msgspec.structs.replace(rent(9), effects=rent(9).effects[1:])
    own = msgspec.structs.replace(gift, effects=rent(9, owner="us").effects[1:])

    queued = judge(limited, gift, facts())

    assert queued.decision == "queue"
    assert queued.results[-1].reason == (
        "no rule covers rent of 9 lamports for a new token account of them; a person must approve it"
    )
    assert judge(limited, own, facts()).decision == "queue"


def test_a_disabled_rule_covers_nothing():
    off = rule("spending-limit", {"maxPerDay": "1000", "asset": TOKEN}, enabled=False)

    assert judge(rules(NATIVE_LIMIT, off), token_call(5), facts()).decision == "queue"


@pytest.mark.parametrize(("setting", "wanted"), [("queue", "queue"), ("allow", "sign"), ("refuse", "refuse")])
def test_the_tenant_says_what_becomes_of_uncovered_effects(setting, wanted):
    verdict = judge(rules(NATIVE_LIMIT), token_call(5), facts(uncovered=setting))

    assert verdict.decision == wanted
    assert verdict.results[-1].type == "uncovered-effect"
    assert verdict.results[-1].passed == (setting == "allow")


def test_allowing_what_is_uncovered_never_voids_a_limit_on_that_token():
    assert judge(rules(TOKEN_LIMIT), approval_call(2**128), facts(uncovered="allow")).decision == "queue"


def test_a_person_settles_what_is_uncovered_unless_the_tenant_refuses_it():
    approved = judge(rules(NATIVE_LIMIT), token_call(5), facts(approving=True))

    assert approved.decision == "sign"
    assert approved.results[-1].reason.endswith("a person approved it")
    assert judge(rules(NATIVE_LIMIT), token_call(5), facts(approving=True, uncovered="refuse")).decision == "refuse"


@pytest.mark.parametrize(
    "set_",
    [
        [],
        [rule("spending-limit", {"maxPerTx": "9"}, enabled=False)],
        [rule("auto-approve-threshold", {"threshold": "9"})],
    ],
)
def test_a_deployment_may_refuse_agents_without_an_enabled_hard_rule(set_):
    denied = judge(rules(*set_), native(5), facts(empty_policy="deny"))

    assert denied.decision == "refuse"
    assert denied.results[-1].type == "empty-policy"
    assert judge(rules(*set_), native(5), facts(empty_policy="allow")).decision == "sign"


def test_counted_amounts_are_given_per_asset_without_fees():
    order = evm(*token_call(5).effects, *token_call(6).effects, *native(9).effects)

    assert judge((), order, facts()).charges == {TOKEN: 11, EVM_NATIVE: 9, "evm:1:native": 9}


def test_a_negative_amount_is_never_judged():
    with pytest.raises(ValueError, match="negative"):
        judge(rules(NATIVE_LIMIT), native(-5), facts())
