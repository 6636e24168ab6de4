"""contract-allowlist, part by part: what its terms say of calls, typed data, plain payments, and other lists."""

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Call, Effect
from custody.policies.kinds.contract_allowlist import ContractAllowlist
from custody.policies.kinds.contract_entries import Constraint
from custody.policies.types import InvalidPolicy
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
    permit,
    rule,
    rules,
    token_call,
    typed_data,
    unknown,
)

NATIVE, NINE = {"maxNativeValueWei": "4"}, {"maxNativeValueWei": "9"}
ABOVE = f"5 wei to {TOKEN_CONTRACT} exceeds its `maxNativeValueWei` of 4 wei"
LISTED, PLAIN = "every contract call is listed", "the order makes no contract call"
UNPERMITTED = f"the typed data does what no entry for {TOKEN_CONTRACT} permits: "
AT = f"the verifying contract {TOKEN_CONTRACT} is listed"


def entry(*selectors, address=TOKEN_CONTRACT, chain=None, unread=None, **constraints):
    """An entry; a constraint is of the selector at its place."""
    given = {"address": address, "selectors": list(selectors)}
    given |= {"chainId": chain} if chain else {}
    given |= {"unread": unread} if unread else {}
    return given | {"constraints": {selectors[int(place[1:])]: one for place, one in constraints.items()}}


def terms(*entries) -> ContractAllowlist:
    (parsed,) = rules(rule("contract-allowlist", {"contracts": list(entries)}))
    assert isinstance(parsed.terms, ContractAllowlist)
    return parsed.terms


def coins(amount, to=TOKEN_CONTRACT, kind="transfer"):
    return Effect(kind, EVM_NATIVE, amount, BOB, to)


def sale(amount, to=ALICE):
    return typed_data(Effect("transfer", TOKEN, amount, BOB, to))


def call_of(selector, value=0) -> Call:
    return Call(1, TOKEN_CONTRACT, selector, value)


BOTH = entry(TRANSFER, UNKNOWN, _0=NATIVE)


@pytest.mark.parametrize(
    ("entries", "order", "passed", "reason"),
    [
        ([entry(TRANSFER)], token_call(5), True, LISTED),
        ([entry(TRANSFER, chain=1)], token_call(5), True, LISTED),
        ([entry(TRANSFER)], native(5), True, PLAIN),
        ([BOTH], native(4, TOKEN_CONTRACT), True, PLAIN),
        ([BOTH], native(5, TOKEN_CONTRACT), False, ABOVE),
        ([entry(TRANSFER, APPROVE, chain=1, _0=NATIVE, _1=NINE)], native(5, TOKEN_CONTRACT), False, ABOVE),
        ([entry(TRANSFER, APPROVE, chain=1, _0=NINE, _1=NATIVE)], native(5, TOKEN_CONTRACT), False, ABOVE),
        ([entry(TRANSFER, chain=2, _0=NATIVE)], native(5, TOKEN_CONTRACT), True, PLAIN),
        ([BOTH], evm(*token_call(5).effects, coins(5), calls=token_call(5).calls), False, "5 wei to"),
        # Beside a call with coins the cap is that of its selector, of which there is none.
        ([BOTH], evm(coins(9), calls=(call_of(UNKNOWN, 9),)), True, LISTED),
        ([BOTH], evm(coins(9), calls=(call_of(UNKNOWN),)), False, "9 wei to"),
        # Neither tokens nor fees are coins that are paid, and to nobody nothing is.
        ([BOTH], evm(Effect("transfer", TOKEN, 9, BOB, TOKEN_CONTRACT)), True, PLAIN),
        ([BOTH], evm(coins(9, kind="fee")), True, PLAIN),
        ([BOTH], evm(coins(9, kind="approval")), True, PLAIN),
        ([BOTH], evm(coins(9, None)), True, PLAIN),
        ([BOTH], evm(Effect("transfer", TOKEN, 9, BOB, None)), True, PLAIN),
        # Typed data: every effect is looked at, also behind coins, and coins as such.
        ([entry(APPROVE, chain=1)], permit(5), True, AT),
        ([entry(UNKNOWN)], typed_data(coins(5, ALICE)), True, AT),
        ([entry(UNKNOWN)], typed_data(coins(5, ALICE), *permit(5).effects), False, UNPERMITTED),
        ([BOTH], typed_data(coins(5)), False, ABOVE),
        # A signature does what a listed call could do, within every constraint of the entry.
        ([entry(TRANSFER)], sale(5), True, AT),
        ([entry(TRANSFER)], sale(0), True, AT),
        ([entry(APPROVE)], sale(0), False, UNPERMITTED),
        ([entry(TRANSFER)], permit(0), True, AT),
        ([entry(TRANSFER)], permit(1), False, UNPERMITTED),
        ([entry(TRANSFER, _0={"recipientAllowlist": [ALICE]})], sale(5), True, AT),
        ([entry(TRANSFER, _0={"recipientAllowlist": [ALICE]})], sale(5, "0x" + "A1" * 20), True, AT),
        ([entry(TRANSFER, _0={"recipientAllowlist": [ALICE]})], sale(5, BOB), False, UNPERMITTED),
        ([entry(APPROVE, _0={"spenderAllowlist": [ALICE]})], permit(5, "0x" + "A1" * 20), True, AT),
        ([entry(APPROVE, UNKNOWN, _1={"spenderBlocklist": [ALICE]})], permit(5), False, UNPERMITTED),
        ([entry(APPROVE, _0={"maxNativeValueWei": "0"})], permit(5), True, AT),
        ([entry(APPROVE, _0={"maxAmount": str(2**256 - 1)})], permit(5), True, AT),
        ([entry(APPROVE, _0={"maxAmount": str(2**256 - 1)})], permit(2**256 - 1), False, UNPERMITTED),
    ],
)
def test_an_order_is_within_a_list_or_is_told_why_not(entries, order, passed, reason):
    found = terms(*entries).check(order, facts())
    assert found[0] is passed
    assert found[1] == reason if passed else found[1].startswith(reason)


def test_a_list_bounds_confines_and_vouches_only_for_what_it_lists():
    call = msgspec.structs.replace(token_call(5).calls[0])
    paid = token_call(5).effects[0]
    more = msgspec.structs.replace(paid, amount=6)
    most, someone = {"maxAmount": "5"}, {"maxAmount": "5", "recipientAllowlist": [ALICE]}

    def find(*entries, effect=paid):
        return terms(*entries).bounds(call, effect), terms(*entries).confines(call)

    assert find(entry(TRANSFER, _0=someone)) == (True, True)
    assert find(entry(TRANSFER, _0=most)) == (True, False)
    assert find(entry(TRANSFER)) == (False, False)
    assert find(entry(APPROVE)) == find() == (False, False)
    assert find(entry(TRANSFER, _0=someone), effect=more) == (False, True)
    # One of two entries is enough, in either order.
    two = entry(TRANSFER), entry(TRANSFER, chain=1, _0=someone)
    assert find(*two) == find(*reversed(two)) == (True, True)

    def vouches(contract, *entries):
        return terms(*entries).vouches(typed_data(contract=contract))

    assert vouches(TOKEN_CONTRACT, entry(TRANSFER, unread="allow"))
    assert vouches(TOKEN_CONTRACT.upper().replace("X", "x"), entry(TRANSFER, chain=1, unread="allow"))
    assert not vouches(TOKEN_CONTRACT, entry(TRANSFER))
    assert not vouches(TOKEN_CONTRACT, entry(TRANSFER, unread="allow", _0=most))
    assert not vouches(TOKEN_CONTRACT, entry(TRANSFER, chain=2, unread="allow"))
    assert not vouches(ALICE, entry(TRANSFER, unread="allow"))
    assert not vouches(None, entry(TRANSFER, unread="allow"))


WIDE, TWO = entry(TRANSFER), entry(TRANSFER, APPROVE)


@pytest.mark.parametrize(
    ("new", "old", "tightens"),
    [
        ([WIDE], [WIDE], True),
        ([], [WIDE], True),
        ([WIDE], [], False),
        ([WIDE, entry(TRANSFER, address=ALICE)], [WIDE], False),
        ([WIDE], [entry(APPROVE)], False),
        # An entry for one chain is within one for all; where there are both, either is enough.
        ([entry(TRANSFER, chain=1)], [WIDE], True),
        ([WIDE], [entry(TRANSFER, chain=1)], False),
        ([entry(TRANSFER, chain=2)], [entry(TRANSFER, chain=1)], False),
        ([entry(TRANSFER, chain=1)], [WIDE, entry(TRANSFER, chain=1, _0={"recipientAllowlist": [BOB]})], True),
        # A cap on plain payments stays, if only a lower one.
        ([], [entry(TRANSFER, _0=NATIVE)], False),
        ([entry(TRANSFER, _0={"maxNativeValueWei": "3"})], [entry(TRANSFER, _0=NATIVE)], True),
        ([entry(TRANSFER, _0=NATIVE)], [entry(TRANSFER, _0=NATIVE)], True),
        ([entry(TRANSFER, _0={"maxNativeValueWei": "5"})], [entry(TRANSFER, _0=NATIVE)], False),
        ([entry(TRANSFER, chain=1, _0=NATIVE)], [entry(TRANSFER, chain=1, _0=NATIVE)], True),
        ([entry(TRANSFER, chain=1, _0=NATIVE)], [entry(TRANSFER, _0=NATIVE)], False),
        ([], [entry(TRANSFER, chain=1, _0=NATIVE)], False),
        # Of several caps the lowest counts, and it may be one for all chains.
        ([entry(TRANSFER, _0=NATIVE)], [WIDE, entry(APPROVE, chain=1, _0=NATIVE)], True),
        ([entry(TRANSFER, _0=NINE)], [WIDE, entry(APPROVE, chain=1, _0=NATIVE)], False),
        ([entry(TRANSFER, _0=NINE)], [WIDE, entry(APPROVE, UNKNOWN, chain=1, _0=NATIVE, _1=NINE)], False),
        ([entry(TRANSFER, APPROVE, _0=NATIVE, _1=NINE)], [TWO, entry(UNKNOWN, chain=1, _0=NATIVE)], True),
        ([entry(TRANSFER, APPROVE, _0=NINE, _1=NATIVE)], [TWO, entry(UNKNOWN, chain=1, _0=NATIVE)], True),
    ],
)
def test_a_list_is_tighter_where_an_old_entry_holds_each_of_its_own(new, old, tightens):
    assert terms(*new).tightens(terms(*old)) is tightens
    beyond = terms(*new).beyond([terms(*old)])
    if tightens:
        assert beyond is None


def test_an_entry_with_any_constraint_trusts_no_document():
    known, bound = {"maxAmount": "5"}, [entry(TRANSFER, UNKNOWN, unread="allow", _0={"maxAmount": "5"})]
    assert [one.trusts() for one in terms(entry(TRANSFER, UNKNOWN)).all_entries()] == [True]
    for place in ("_0", "_1"):
        (one,) = terms(entry(TRANSFER, UNKNOWN, unread="allow", **{place: known})).all_entries()
        assert not one.trusts()
    assert terms(*bound).check(unknown(), facts())[0] is False


NONE, AMOUNT, COINS = Constraint(), Constraint(max_amount=5), Constraint(max_native=5)
A, AB = frozenset({ALICE}), frozenset({ALICE, BOB})


@pytest.mark.parametrize(
    ("wide", "narrow", "tightens"),
    [
        (NONE, NONE, True),
        # A bound on the amount covers the asset, so it neither comes nor goes.
        (NONE, AMOUNT, False),
        (AMOUNT, NONE, False),
        (AMOUNT, AMOUNT, True),
        (AMOUNT, Constraint(max_amount=4), True),
        (AMOUNT, Constraint(max_amount=6), False),
        (Constraint(max_amount=0), Constraint(max_amount=0), True),
        (Constraint(max_amount=0), Constraint(max_amount=1), False),
        (Constraint(max_amount=1), Constraint(max_amount=0), True),
        (NONE, COINS, True),
        (COINS, NONE, False),
        (COINS, COINS, True),
        (COINS, Constraint(max_native=4), True),
        (COINS, Constraint(max_native=6), False),
        (Constraint(max_native=0), Constraint(max_native=1), False),
        (Constraint(max_native=0), NONE, False),
        *(
            (Constraint(**{field: wide}), Constraint(**{field: narrow}), tightens)
            for field in ("recipients", "spenders")
            for wide, narrow, tightens in [
                (None, A, True), (A, None, False), (AB, A, True), (A, AB, False), (A, A, True), (A, frozenset(), True)
            ]
        ),
        *(
            (Constraint(**{field: wide}), Constraint(**{field: narrow}), tightens)
            for field in ("no_recipients", "no_spenders")
            for wide, narrow, tightens in [
                (None, A, True), (A, None, False), (AB, A, False), (A, AB, True), (A, A, True), (frozenset(), A, True)
            ]
        ),
    ],
)  # fmt: skip
def test_a_constraint_is_tighter_where_no_call_more_keeps_it(wide, narrow, tightens):
    assert narrow.tightens(wide) is tightens


@pytest.mark.parametrize(
    ("wide", "narrow", "contains"),
    [
        (WIDE, WIDE, True),
        (WIDE, entry(TRANSFER, address=ALICE), False),
        (WIDE, entry(TRANSFER, chain=1), True),
        (entry(TRANSFER, chain=1), entry(TRANSFER, chain=1), True),
        (entry(TRANSFER, chain=1), entry(TRANSFER, chain=2), False),
        (entry(TRANSFER, chain=1), WIDE, False),
        (entry(TRANSFER, unread="allow"), WIDE, True),
        (WIDE, entry(TRANSFER, unread="allow"), False),
        (entry(TRANSFER, unread="allow"), entry(TRANSFER, unread="allow"), True),
        (TWO, WIDE, True),
        (WIDE, TWO, False),
        # A document keeps every constraint of an entry, so none of them may go with its selector.
        (entry(TRANSFER, APPROVE, _1={"maxAmount": "5"}), WIDE, False),
    ],
)
def test_an_entry_contains_another_that_permits_no_more_and_covers_no_less(wide, narrow, contains):
    (one,), (other,) = terms(wide).all_entries(), terms(narrow).all_entries()
    assert one.contains(other) is contains


@pytest.mark.parametrize("field", ["recipientAllowlist", "recipientBlocklist", "spenderAllowlist", "spenderBlocklist"])
def test_null_is_no_constraint_and_an_empty_list_is_one(field):
    (absent,), (empty,) = (terms(entry(TRANSFER, _0={field: one})).all_entries() for one in (None, []))
    assert (absent.trusts(), empty.trusts()) == (True, False)


@pytest.mark.parametrize("field", ["maxAmount", "maxNativeValueWei"])
def test_an_amount_that_cannot_be_is_refused_by_its_field(field):
    with pytest.raises(InvalidPolicy, match=f"`{field}` must be at most"):
        terms(entry(TRANSFER, _0={field: str(2**256)}))
