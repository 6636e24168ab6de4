"""Coverage: the effects that a set of rules can judge; others always ask, rule by rule and asset by asset."""

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.selectors import PERMIT2
from custody.chains.types import Call, Effect, Subject
from custody.policies.coverage import coverage, describe, gaps
from custody.policies.judge import judge
from tests.rules.policies.makers import (
    ALICE,
    APPROVE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    TRANSFER,
    UNKNOWN,
    evm,
    facts,
    native,
    rule,
    rules,
    token_call,
    typed_data,
    unknown,
)

OTHER = f"evm:1:0x{'5a' * 20}"


def limit(asset, enabled=True):
    return rule("spending-limit", {"maxPerDay": "1000", "asset": asset}, enabled=enabled)


def calls(address=TOKEN_CONTRACT, *, enabled=True, **entry):
    return rule(
        "contract-allowlist", {"contracts": [{"address": address, "selectors": [APPROVE], **entry}]}, enabled=enabled
    )


MESSAGES = rule("message-allowlist", {"siweDomains": ["app.example.com"]})
ADDRESSES = rule("approved-addresses", {"addresses": [ALICE]})


def off(one):
    return msgspec.structs.replace(one, enabled=False)


@pytest.mark.parametrize("one", [limit(TOKEN), calls(), ADDRESSES, MESSAGES])
def test_a_disabled_rule_covers_nothing_and_hides_none_behind_it(one):
    nothing, alone, behind = (coverage(rules(*set_)) for set_ in ([off(one)], [one], [off(limit(OTHER)), one]))

    assert nothing == coverage(())
    assert alone != nothing
    assert behind == alone


def test_all_rules_cover_together_in_any_order():
    set_ = [limit(TOKEN), calls(), ADDRESSES, MESSAGES, limit(OTHER), calls("0x" + "22" * 20), MESSAGES]

    for given_ in (set_, set_[::-1]):
        found = coverage(rules(*given_))
        assert found.assets == {TOKEN, OTHER}
        assert (len(found.calls), found.recipients, len(found.messages)) == (2, True, 2)


def unread(contract=TOKEN_CONTRACT, chain=1, *, of=1, apart=True):
    call = Call(of, contract, UNKNOWN, apart=apart)
    effect = Effect("unread", None, 0, BOB, contract, call=call, label="all of the call", size=4)
    return evm(effect, calls=(call,), destination=contract, chain_id=chain)


def decide_without_asking(order, *set_):
    """Judge it in a tenant that lets pass whatever no rule is about."""
    return judge(rules(*set_), order, facts(uncovered="allow")).decision


@pytest.mark.parametrize(
    ("limited", "decision"),
    [
        (["evm:10:0x" + "5a" * 20], "queue"),
        (["evm:10:0x" + "5a" * 20, OTHER], "queue"),
        ([OTHER, "bitcoin"], "sign"),
        ([OTHER], "sign"),
    ],
)
def test_unread_bytes_ask_where_a_token_of_the_calls_own_chain_is_limited(limited, decision):
    assert decide_without_asking(unread(of=10), *map(limit, limited)) == decision


@pytest.mark.parametrize(
    ("contract", "limited", "decision"),
    [
        (TOKEN_CONTRACT, OTHER, "sign"),
        (TOKEN_CONTRACT, TOKEN, "queue"),
        (TOKEN_CONTRACT, f"evm:10:{TOKEN_CONTRACT}", "sign"),
        # What Permit2 may move nobody can tell.
        (PERMIT2, OTHER, "queue"),
        (PERMIT2, "evm:native", "queue"),
    ],
)
def test_an_entry_lets_unread_bytes_pass_unless_they_may_touch_what_is_limited(contract, limited, decision):
    listed = calls(contract, selectors=[UNKNOWN], unread="allow")

    assert judge(rules(listed, limit(limited)), unread(contract), facts()).decision == decision
    assert judge(rules(listed), unread(contract), facts()).decision == "sign"


@pytest.mark.parametrize(("chain", "covered"), [(1, True), (10, False), (None, True)])
def test_a_document_of_unknown_kind_passes_for_a_trusted_contract_of_its_chain(chain, covered):
    set_ = rules(calls(unread="allow", **({} if chain is None else {"chainId": chain})))

    assert (gaps(coverage(set_), unknown()) == []) is covered


def test_a_document_that_is_known_to_move_value_passes_for_no_contract():
    moves, set_ = typed_data(Effect("unread", None, 0, BOB, TOKEN_CONTRACT)), rules(calls(unread="allow"))

    assert gaps(coverage(set_), unknown()) == []
    assert gaps(coverage(set_), moves) == list(moves.effects)


@pytest.mark.parametrize("asset", [TOKEN, EVM_NATIVE])
def test_a_bound_on_a_call_covers_a_token_and_never_a_coin(asset):
    order = token_call(5)
    effect = msgspec.structs.replace(order.effects[0], asset=asset)
    set_ = rules(limit(OTHER), calls(selectors=[TRANSFER], constraints={TRANSFER: {"maxAmount": "10"}}))

    found = gaps(coverage(set_), msgspec.structs.replace(order, effects=(effect,)))

    assert found == ([] if asset == TOKEN else [effect])


def test_an_effect_that_can_only_take_power_away_needs_no_cover():
    call = Call(1, TOKEN_CONTRACT, APPROVE, spender=ALICE, amount=0, decoded=True)
    given_ = Effect("approval", TOKEN, 0, BOB, spender=ALICE, call=call)
    taken = msgspec.structs.replace(given_, revokes=True)

    assert gaps(coverage(rules(limit(OTHER))), evm(taken, calls=(call,))) == []
    assert gaps(coverage(rules(limit(OTHER))), evm(given_, calls=(call,))) == [given_]


def test_nothing_is_asked_where_nothing_is_limited_and_unread_bytes_ask_where_something_is():
    order: Subject = unread()

    assert gaps(coverage(rules(rule("rate-limit", {"maxTxPerDay": 5}))), order) == []
    for one in (limit("bitcoin"), calls("0x" + "22" * 20), ADDRESSES):
        assert gaps(coverage(rules(one)), order) == list(order.effects)
    assert gaps(coverage(rules(ADDRESSES)), native(5)) == []


def test_unread_effects_are_told_with_where_they_are():
    (whole,) = unread().effects
    read = msgspec.structs.replace(whole, label="behind it", call=msgspec.structs.replace(whole.call, decoded=True))
    where = f"of {UNKNOWN} on {TOKEN_CONTRACT}"
    units = facts().units

    assert describe([whole], units, 1) == f"an undecoded call {where}"
    assert describe([read], units, 1) == f"4 unread bytes behind it {where}"
    assert describe([msgspec.structs.replace(read, size=None)], units, 1) == f"what is unread behind it {where}"
    assert describe([msgspec.structs.replace(whole, call=None)], units, 1) == "an undecoded call"
    coin = Effect("transfer", "bitcoin", 1)
    assert describe([coin] * 3, units, 1).count("a transfer of") == 3
    assert describe([coin] * 5, units, 1).endswith(" and 2 more")
    assert "more" not in describe([coin] * 3, units, 1)
