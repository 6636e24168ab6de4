"""Contracts that take the form of another: a wrapper that keeps what it is sent, and rules that a form would evade."""

import msgspec
import pytest
from eth_abi import encode
from solders.pubkey import Pubkey

from custody.chains.evm.calldata import decode
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.policies.coverage import coverage, gaps
from custody.policies.judge import judge
from custody.policies.narrow import narrow
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    TOKEN,
    TOKEN_CONTRACT,
    UNKNOWN,
    approval_call,
    evm,
    facts,
    native,
    rule,
    rules,
    unknown,
    unread_call,
)

THIEF, OTHER = "0x" + "de" * 20, "0x" + "0f" * 20
EXECUTE = "0xb61d27f6"


def execute(to: str, target: str, value: int, data: bytes = b"", sent: int | None = None) -> Subject:
    effects, calls = decode(to, value if sent is None else sent, within(target, value, data), 1, BOB)
    return evm(*effects, calls=calls, destination=to)


def within(target: str, value: int, data: bytes = b"") -> bytes:
    return bytes.fromhex(EXECUTE[2:]) + encode(["address", "uint256", "bytes"], [target, value, data])


def decision(set_, order, **changes):
    return judge(rules(*set_), order, facts(**changes)).decision


APPROVED = rule("approved-addresses", {"addresses": [ALICE]})
BLOCKED = rule("approved-addresses", {"addresses": [THIEF], "mode": "blacklist"})


def test_coins_sent_to_a_contract_are_its_own_whatever_the_call_says_of_them():
    order = execute(THIEF, ALICE, 5)

    assert decision([APPROVED], order) == "refuse"
    assert decision([BLOCKED], order) == "refuse"
    assert (order.effects[0].to, order.effects[0].amount) == (THIEF, 0)
    assert decision([rule("approved-addresses", {"addresses": [ALICE, THIEF]})], order) == "sign"


def test_a_blocked_contract_is_blocked_at_any_depth():
    assert decision([BLOCKED], execute(OTHER, THIEF, 5, within(ALICE, 5))) == "refuse"
    assert decision([BLOCKED], execute(OTHER, THIEF, 0, within(ALICE, 0))) == "refuse"


@pytest.mark.parametrize(("setting", "wanted"), [("queue", "queue"), ("allow", "queue"), ("refuse", "refuse")])
def test_a_wrapper_that_no_rule_names_asks_where_a_token_is_limited(setting, wanted):
    limit = rule("spending-limit", {"maxPerDay": "9", "asset": TOKEN})
    entry = {"address": THIEF, "selectors": [EXECUTE]}

    assert decision([limit], execute(THIEF, ALICE, 0), uncovered=setting) == wanted
    assert decision([limit], execute(TOKEN_CONTRACT, ALICE, 0), uncovered=setting) == "sign"
    listed = rule("contract-allowlist", {"contracts": [entry]})
    assert decision([limit, listed], execute(THIEF, ALICE, 0), uncovered=setting) == "sign"


def test_a_wrapper_may_do_more_than_its_calls_and_that_is_told():
    order = execute(THIEF, ALICE, 0)
    (wrapping,) = gaps(coverage(rules(rule("spending-limit", {"maxPerDay": "9", "asset": TOKEN}))), order)
    assert wrapping == Effect("unread", None, 0, to=THIEF, label="around the calls within", call=order.calls[0])


def test_a_cap_on_plain_payments_holds_within_a_call():
    entries = [
        {"address": OTHER, "selectors": [EXECUTE]},
        {"address": ALICE, "selectors": [UNKNOWN], "constraints": {UNKNOWN: {"maxNativeValueWei": "4"}}},
    ]
    listed = rule("contract-allowlist", {"contracts": entries})

    assert decision([listed], native(5, to=ALICE)) == "refuse"
    assert decision([listed], execute(OTHER, ALICE, 5)) == "refuse"
    assert decision([listed], execute(OTHER, ALICE, 4)) == "sign"


def test_an_account_that_calls_itself_is_unread_besides():
    transfer = bytes.fromhex("a9059cbb") + encode(["address", "uint256"], [ALICE, 5])
    order = execute(TOKEN_CONTRACT, TOKEN_CONTRACT, 0, transfer)

    assert [(one.kind, one.label) for one in order.effects] == [("transfer", None), ("unread", "a call of itself")]
    assert decision([rule("spending-limit", {"maxPerDay": "9", "asset": TOKEN})], order) == "queue"


LIMIT = rule("spending-limit", {"maxPerDay": "5", "asset": TOKEN}, enabled=False, id="named")
LIST = rule("approved-addresses", {"addresses": [TOKEN_CONTRACT]}, enabled=False, id="named")


@pytest.mark.parametrize(
    ("set_", "order"),
    [
        (LIMIT, approval_call(2**256 - 1)),
        (LIMIT, unread_call()),
        (LIST, unread_call()),
        (LIST, unknown()),
    ],
)
def test_a_disabled_rule_that_a_signer_names_asks_for_what_would_evade_it(set_, order):
    parsed = rules(set_)

    assert narrow(parsed, order, facts(), []).decision == "sign"
    assert narrow(parsed, order, facts(), ["named"]).decision == "queue"
    assert narrow(parsed, order, facts(approving=True), ["named"]).decision == "sign"
    assert narrow(parsed, order, facts(uncovered="refuse"), ["named"]).decision == "refuse"


def test_a_disabled_rule_that_is_named_asks_for_nothing_that_it_is_not_about():
    other = evm(Effect("transfer", EVM_NATIVE, 5, BOB, ALICE))

    assert narrow(rules(LIMIT), other, facts(), ["named"]).decision == "sign"


def test_the_owners_tried_for_an_order_are_shared_by_all_lists():
    class Account(msgspec.Struct, frozen=True):
        address: str = "account"

        def owner_among(self, addresses):
            tried.extend(addresses)

    tried: list[str] = []
    names = [str(Pubkey.from_bytes(bytes((number,)) * 32)) for number in range(1, 21)]
    lists = [rule("approved-addresses", {"addresses": names, "mode": "blacklist"}) for _ in range(8)]
    paid = Effect("transfer", "solana:mint", 1, "us", "account", account=Account(), unowned=True)
    order = Subject("solana", "solana", 101, None, "account", (paid,))

    assert judge(rules(*lists[:1]), order, facts()).decision == "refuse"
    one = len(tried)
    for several in (2, 4, 8):
        tried.clear()
        judge(rules(*lists[:several]), order, facts())
        assert len(tried) == one * several <= 256
    tried.clear()
    judge(rules(*(lists + lists)), order, facts())
    assert tried == []
