"""contract-allowlist: which calls, to whom and how much."""

import msgspec
import pytest

from custody.chains.types import Call, Effect
from custody.chains.units import Unit, Units
from custody.policies.judge import judge
from custody.policies.types import InvalidPolicy
from tests.rules.policies.makers import (
    ALICE,
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
    rule,
    rules,
    suffixed_call,
    token_call,
    typed_data,
    unknown,
    unread_call,
)


def entry(*selectors, chain=None, **constraint):
    found = {"address": TOKEN_CONTRACT, "selectors": list(selectors)}
    if chain:
        found["chainId"] = chain
    if constraint:
        found["constraints"] = {selectors[0]: constraint}
    return found


def allow(*entries):
    return rules(rule("contract-allowlist", {"contracts": list(entries)}))


def decision(set_, order):
    return judge(set_, order, facts()).decision


def with_bound(order):
    return msgspec.structs.replace(order, bounded=True)


def test_a_listed_call_is_signed_and_any_other_refused():
    assert decision(allow(entry(TRANSFER)), token_call(5)) == "sign"
    assert decision(allow(entry(APPROVE)), token_call(5)) == "refuse"
    assert decision(allow(), token_call(5)) == "refuse"


@pytest.mark.parametrize("selector", ["a9059cbb", "0xA9059CBB", "0xa9059cbb"])
def test_a_selector_is_written_with_or_without_prefix_in_any_case(selector):
    assert decision(allow(entry(selector, maxAmount="5")), token_call(5)) == "sign"


def test_an_entry_with_a_chain_is_for_that_chain_only():
    assert decision(allow(entry(TRANSFER, chain=1)), token_call(5, chain_id=10)) == "refuse"
    assert decision(allow(entry(TRANSFER)), token_call(5, chain_id=10)) == "sign"


@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"recipientAllowlist": [ALICE]}, "sign"),
        ({"recipientAllowlist": [BOB]}, "refuse"),
        ({"recipientAllowlist": []}, "refuse"),
        ({"recipientBlocklist": [ALICE]}, "refuse"),
        ({"recipientBlocklist": [BOB]}, "sign"),
        ({"maxAmount": "5"}, "sign"),
        ({"maxAmount": "4"}, "refuse"),
        ({"spenderAllowlist": [ALICE]}, "refuse"),
    ],
)
def test_a_transfer_keeps_the_constraints_of_its_selector(constraint, wanted):
    assert decision(allow(entry(TRANSFER, **constraint)), token_call(5, to=ALICE)) == wanted


@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"spenderAllowlist": [ALICE]}, "sign"),
        ({"spenderAllowlist": [BOB]}, "refuse"),
        ({"spenderBlocklist": [ALICE]}, "refuse"),
    ],
)
def test_an_approval_keeps_the_constraints_on_its_spender(constraint, wanted):
    assert decision(allow(entry(APPROVE, **constraint)), approval_call(5, spender=ALICE)) == wanted


@pytest.mark.parametrize("constraint", [{"recipientBlocklist": [BOB]}, {"maxAmount": "9"}, {"spenderBlocklist": [BOB]}])
def test_a_constraint_on_what_was_not_decoded_fails(constraint):
    assert decision(allow(entry(UNKNOWN, **constraint)), unread_call()) == "refuse"


def test_native_value_is_capped_with_the_call_and_without():
    capped = allow(entry(UNKNOWN, maxNativeValueWei="10"))

    assert decision(capped, unread_call(value=10)) == "queue"
    assert decision(capped, unread_call(value=11)) == "refuse"
    assert decision(capped, native(11, to=TOKEN_CONTRACT)) == "refuse"
    assert decision(capped, native(11, to=ALICE)) == "sign"


def test_a_payment_without_calldata_needs_no_entry():
    assert decision(allow(), native(5)) == "sign"


def test_every_call_of_a_batch_must_be_listed():
    inner = token_call(5)
    outer = Call(1, TOKEN_CONTRACT, "0xac9650d8", decoded=True)
    batch = evm(*inner.effects, calls=(outer, *inner.calls), destination=TOKEN_CONTRACT)

    assert decision(allow(entry(TRANSFER)), batch) == "refuse"
    assert decision(allow(entry(TRANSFER), entry("0xac9650d8")), batch) == "sign"


def test_something_undecodable_without_a_call_fails_closed():
    assert decision(allow(entry(TRANSFER)), evm(Effect("unread", None, 0))) == "refuse"


def test_a_call_named_only_by_its_effect_is_judged_too():
    assert decision(allow(entry(APPROVE)), evm(*token_call(5).effects)) == "refuse"


def test_the_verifying_contract_of_typed_data_must_be_listed():
    assert decision(allow(entry(TRANSFER)), typed_data()) == "sign"
    assert decision(allow(entry(TRANSFER)), typed_data(contract=ALICE)) == "refuse"
    assert decision(allow(entry(TRANSFER)), typed_data(contract=None)) == "refuse"
    assert decision(allow(entry(TRANSFER, chain=1)), typed_data(chain_id=None)) == "refuse"


def test_a_permit_keeps_the_constraints_a_call_would_have_to_keep():
    constrained = allow(entry(APPROVE, spenderAllowlist=[ALICE], maxAmount="10"))

    assert decision(constrained, permit(10, spender=ALICE)) == "sign"
    assert decision(constrained, permit(11, spender=ALICE)) == "refuse"
    assert decision(constrained, permit(10, spender=BOB)) == "refuse"
    assert decision(allow(entry(TRANSFER, recipientAllowlist=[ALICE])), permit(10, spender=ALICE)) == "refuse"


SUBMIT = "0xa1903eab"


def passing(*selectors, **more):
    """An entry that lets pass what nobody can read."""
    return entry(*selectors, **more) | {"unread": "allow"}


def test_typed_data_of_an_unknown_kind_passes_where_an_entry_without_constraints_says_so():
    assert decision(allow(entry(SUBMIT)), unknown()) == "queue"
    assert decision(allow(passing(SUBMIT)), unknown()) == "sign"
    assert decision(allow(passing(SUBMIT)), unknown(contract=ALICE)) == "refuse"
    assert decision(allow(passing(SUBMIT)), unknown(contract=None)) == "refuse"
    assert decision(allow(passing(SUBMIT, maxAmount="5")), unknown()) == "refuse"
    assert decision(allow(entry(SUBMIT, maxAmount="5"), passing(APPROVE)), unknown()) == "sign"


def test_an_entry_permits_what_is_read_of_a_call_and_the_rest_asks_unless_it_says_so():
    assert decision(allow(entry(TRANSFER)), suffixed_call()) == "queue"
    assert decision(allow(entry(TRANSFER, recipientAllowlist=[ALICE], maxAmount="5")), suffixed_call()) == "queue"
    assert decision(allow(entry(TRANSFER, recipientAllowlist=[ALICE], maxAmount="4")), suffixed_call()) == "refuse"
    assert decision(allow(passing(TRANSFER)), suffixed_call()) == "sign"
    assert decision(allow(passing(APPROVE)), suffixed_call()) == "refuse"
    assert decision(allow(passing(UNKNOWN)), unread_call()) == "sign"


def test_calls_within_a_call_that_cannot_be_told_are_on_no_list():
    hidden = Call(1, TOKEN_CONTRACT, "0xac9650d8", apart=False)
    order = evm(Effect("unread", None, 0, BOB, TOKEN_CONTRACT, call=hidden), calls=(hidden,))

    verdict = judge(allow(passing("0xac9650d8")), order, facts())

    assert verdict.decision == "refuse"
    assert verdict.results[0].reason.endswith("holds calls that cannot be told, so they are not listed")


@pytest.mark.parametrize("setting", ["queue", "allow"])
@pytest.mark.parametrize(
    "beside",
    [
        ("spending-limit", {"maxPerDay": "9", "asset": TOKEN}),
        ("auto-approve-threshold", {"threshold": "9", "asset": TOKEN}),
        ("approved-addresses", {"addresses": [TOKEN_CONTRACT, ALICE]}),
        ("approved-addresses", {"addresses": [BOB], "mode": "blacklist"}),
    ],
)
@pytest.mark.parametrize("order", [unread_call(), suffixed_call(), unknown()])
def test_nothing_lets_unread_bytes_pass_beside_a_rule_about_what_they_may_touch(beside, order, setting):
    listed = rule("contract-allowlist", {"contracts": [passing(UNKNOWN, TRANSFER)]})
    set_ = rules(listed, rule(*beside))

    verdict = judge(set_, order, facts(uncovered=setting))

    assert verdict.decision == "queue"
    assert judge(set_[:1], order, facts(uncovered=setting)).decision == "sign"


APPROVING = (APPROVE, "0x39509351", "0xd505accf", "0x8fcbaf0c", "0x87517c45")
TRANSFERRING = (TRANSFER, "0x23b872dd", "0xe3ee160e", "0xef55bec6", "0x36c78516")


def authorization(amount):
    return typed_data(Effect("transfer", TOKEN, amount, BOB, ALICE))


@pytest.mark.parametrize("selector", [SUBMIT, *APPROVING, *TRANSFERRING])
def test_a_signature_may_do_no_more_than_a_listed_call_could(selector):
    listed = allow(entry(selector))

    assert decision(listed, permit(2**256 - 1)) == ("sign" if selector in APPROVING else "refuse")
    assert decision(listed, authorization(1)) == ("sign" if selector in TRANSFERRING else "refuse")


def test_the_entry_that_lists_the_power_is_the_one_whose_constraints_hold():
    listed = allow(entry(SUBMIT), entry(APPROVE, spenderAllowlist=[ALICE]))

    assert decision(listed, permit(5, spender=ALICE)) == "sign"
    assert decision(listed, permit(5, spender=BOB)) == "refuse"


def test_a_revocation_by_signature_needs_no_selector_but_keeps_the_constraints():
    assert decision(allow(entry(SUBMIT)), permit(0)) == "sign"
    assert decision(allow(entry(SUBMIT, spenderAllowlist=[ALICE])), permit(0, spender=BOB)) == "refuse"


def test_typed_data_that_nobody_can_read_is_refused_even_at_a_listed_contract():
    unread = typed_data(Effect("unread", None, 0, BOB, TOKEN_CONTRACT))

    assert decision(allow(entry(SUBMIT, *APPROVING, *TRANSFERRING)), unread) == "refuse"


@pytest.mark.parametrize(
    "contracts",
    [
        [entry()],
        [entry("0xa9059c")],
        [entry("0xa9059cbb\n")],
        [entry(TRANSFER), entry(APPROVE, TRANSFER)],
        [{**entry(TRANSFER), "address": "0x12"}],
        [{**entry(TRANSFER), "constraints": {APPROVE: {}}}],
        [{**entry(TRANSFER), "constraints": {TRANSFER: {"maxValue": "1"}}}],
        [{**entry(TRANSFER), "constraints": {TRANSFER: {}, "A9059CBB": {}}}],
        [{"address": TOKEN_CONTRACT}],
    ],
)
def test_an_entry_that_cannot_be_meant_is_not_accepted(contracts):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        allow(*contracts)


UNITS = Units({1: Unit("ETH", 18, "wei")}, {TOKEN: Unit("USDC", 6)})
CALL = f"the call of {TRANSFER} on {TOKEN_CONTRACT} (chain 1) is outside its constraints: "


@pytest.mark.parametrize(
    ("constraint", "order", "why"),
    [
        ({"recipientAllowlist": [BOB]}, {}, f"the recipient {ALICE} is not in `recipientAllowlist` ({BOB})"),
        ({"recipientAllowlist": []}, {}, f"the recipient {ALICE} is not in `recipientAllowlist` (which is empty)"),
        ({"recipientBlocklist": [ALICE]}, {}, f"the recipient {ALICE} is in `recipientBlocklist`"),
        ({"spenderAllowlist": [BOB]}, {}, "it names no spender that can be read, and `spenderAllowlist` restricts it"),
        ({"maxAmount": "50000000"}, {}, "it moves or allows 80.5 USDC, and `maxAmount` is 50 USDC"),
        (
            {"maxNativeValueWei": "10"},
            {"value": 10**17},
            "it sends 0.1 ETH along, above `maxNativeValueWei` of 10 wei",
        ),
        # The first that fails is told.
        ({"recipientBlocklist": [ALICE], "maxAmount": "1"}, {}, f"the recipient {ALICE} is in `recipientBlocklist`"),
    ],
)
def test_a_refusal_names_the_constraint_and_what_would_pass(constraint, order, why):
    verdict = judge(allow(entry(TRANSFER, **constraint)), token_call(80_500_000, **order), facts(units=UNITS))

    assert verdict.results[0].reason == CALL + why


def test_of_a_long_list_a_few_addresses_are_named():
    many = [f"0x{number:040x}" for number in range(1, 9)]

    verdict = judge(allow(entry(TRANSFER, recipientAllowlist=many)), token_call(1), facts())

    assert verdict.results[0].reason.endswith(f"({', '.join(many[:3])} and 5 more)")


def test_typed_data_that_is_refused_names_the_constraint_too():
    verdict = judge(allow(entry(APPROVE, maxAmount="5000000")), permit(6_000_000), facts(units=UNITS))

    assert verdict.results[0].reason.endswith("permits: it moves or allows 6 USDC, and `maxAmount` is 5 USDC")


def test_a_call_that_is_not_listed_says_which_are():
    listed = judge(allow(entry(APPROVE)), token_call(5), facts()).results[0].reason
    other = judge(allow(), token_call(5), facts()).results[0].reason

    assert listed.endswith(f"is not listed; of that contract {APPROVE} may be called")
    assert other.endswith("is not listed, and nothing of that contract is")


@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"maxAmount": "5", "recipientAllowlist": [ALICE]}, "sign"),
        ({"maxAmount": "5", "recipientBlocklist": [BOB]}, "sign"),
        ({"maxAmount": "4", "recipientAllowlist": [ALICE]}, "refuse"),
        ({"maxAmount": "5", "recipientAllowlist": [BOB]}, "refuse"),
        ({"maxAmount": "5", "recipientBlocklist": []}, "refuse"),
        ({"maxAmount": "5", "spenderAllowlist": [ALICE]}, "refuse"),
        ({"maxAmount": "5"}, "refuse"),
        ({"recipientAllowlist": [ALICE]}, "refuse"),
        ({}, "refuse"),
    ],
    ids=str,
)
def test_a_bounded_order_needs_an_entry_with_amount_and_recipients(constraint, wanted):
    verdict = judge(allow(entry(TRANSFER, **constraint)), with_bound(token_call(5)), facts())

    assert verdict.decision == wanted
    assert sum(not result.passed for result in verdict.results) == (wanted == "refuse")


def test_a_bounded_order_is_refused_without_a_rule_and_though_a_person_approves():
    order = with_bound(token_call(5))

    assert judge((), order, facts()).results[0].type == "contract-allowlist"
    assert judge((), order, facts(approving=True)).decision == "refuse"
    assert judge((), token_call(5), facts()).decision == "sign"


def test_one_of_several_lists_is_enough_to_bound_an_order():
    full = entry(TRANSFER, maxAmount="5", recipientAllowlist=[ALICE])
    both = rules(
        rule("contract-allowlist", {"contracts": [full]}), rule("contract-allowlist", {"contracts": [entry(TRANSFER)]})
    )
    halves = rules(
        rule("contract-allowlist", {"contracts": [entry(TRANSFER, maxAmount="5")]}),
        rule("contract-allowlist", {"contracts": [entry(TRANSFER, recipientAllowlist=[ALICE])]}),
    )

    assert decision(both, with_bound(token_call(5))) == "sign"
    assert decision(halves, with_bound(token_call(5))) == "refuse"
