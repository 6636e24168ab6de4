"""approved-addresses, effect by effect: whom each pays, empowers or calls, and what the rule says of it."""

from collections.abc import Iterable

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Account, Call, Effect, Subject
from custody.policies.holders import with_holders, with_share
from custody.policies.judge import judge, judge_evaded
from custody.policies.narrow import narrow
from custody.policies.types import MOST_OWNERS_TRIED, Result
from tests.rules.policies.makers import (
    ALICE,
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
    suffixed_call,
    token_call,
    typed_data,
    unread_call,
)
from tests.rules.policies.test_policy_batches import batch
from tests.rules.policies.test_policy_message_allowlist import evm as message

THIEF = "0x" + "de" * 20
ACCEPTABLE = "every recipient is acceptable"
UNREAD = "what is unread may pay or empower anybody; what is read pays nobody that this rule refuses"


def check(order: Subject, *listed: str, mode: str = "whitelist") -> tuple[bool, str]:
    (parsed,) = rules(rule("approved-addresses", {"addresses": list(listed), "mode": mode}))
    return parsed.terms.check(order, facts())


def not_approved(address: str) -> str:
    return f"{address} is not an approved address"


INNER = Call(1, TOKEN_CONTRACT, UNKNOWN)
HIDDEN = Effect("unread", None, 0, BOB, ALICE, call=INNER)
SHARED = Subject("bitcoin", "bitcoin", None, "bip122:x", "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", ())
SHARED = msgspec.structs.replace(SHARED, effects=(Effect("unread", None, 0, "ours", label="others pay"),))


@pytest.mark.parametrize(
    ("order", "listed", "refusal", "said"),
    [
        (native(5, ALICE), [ALICE], None, ACCEPTABLE),
        (native(5, BOB), [ALICE], not_approved(BOB), ""),
        (typed_data(), [ALICE], None, "the order has no recipient"),
        # To ourselves is to somebody too, but on Solana.
        (token_call(5, BOB), [TOKEN_CONTRACT], not_approved(BOB), ""),
        (token_call(0, BOB), [ALICE, TOKEN_CONTRACT], not_approved(BOB), ""),
        (evm(Effect("transfer", EVM_NATIVE, 0, BOB, THIEF, nft=True)), [ALICE], not_approved(THIEF), ""),
        (evm(Effect("transfer", EVM_NATIVE, 0, BOB, THIEF)), [ALICE], None, ACCEPTABLE),
        # What was read of a call names whom it pays; a call that nobody read is itself paid, wherever it is made.
        (suffixed_call(5, ALICE), [ALICE], None, UNREAD),
        (unread_call(), [TOKEN_CONTRACT], None, UNREAD),
        (unread_call(), [ALICE], not_approved(TOKEN_CONTRACT), ""),
        (evm(*native(5).effects, HIDDEN, calls=(INNER,)), [ALICE], not_approved(TOKEN_CONTRACT), ""),
        (evm(HIDDEN, calls=(INNER,), destination=THIEF), [ALICE, TOKEN_CONTRACT], not_approved(THIEF), ""),
        (SHARED, [str(SHARED.destination)], None, UNREAD),
        (SHARED, [ALICE], not_approved(str(SHARED.destination)), ""),
        (typed_data(Effect("unread", None, 0, BOB, label="x")), [TOKEN_CONTRACT], None, UNREAD),
        (typed_data(Effect("unread", None, 0, BOB, label="x")), [ALICE], not_approved(TOKEN_CONTRACT), ""),
        # Each call of a batch by itself, also one that does nothing.
        (batch(native(5, ALICE), evm(destination=THIEF)), [ALICE], f"call 2: {not_approved(THIEF)}", ""),
        (batch(native(5, THIEF), native(5, ALICE)), [ALICE], f"call 1: {not_approved(THIEF)}", ""),
        (batch(native(5, ALICE), native(6, ALICE)), [ALICE], None, ACCEPTABLE),
    ],
)
def test_everyone_that_an_order_pays_or_calls_blindly_must_be_approved(order, listed, refusal, said):
    passed, reason = check(order, *listed)
    assert (passed, reason) == ((True, said) if refusal is None else (False, refusal))


class Held(Account, frozen=True):
    """An account of the first address that is asked for."""

    def owner_among(self, addresses: Iterable[str]) -> str | None:
        return min(addresses, default=None)


PAID = Effect("transfer", "solana:mint", 5, "us", "account", account=Held("account"), unowned=True)
OWNED = msgspec.structs.replace(PAID, to="owner", unowned=False)


def with_holder(effect: Effect, *listed: str, most: int = 2) -> Effect:
    subject = Subject("solana", "solana", 101, None, "owner", (effect,))
    (found,) = with_holders(subject, frozenset(listed), most).effects
    return found


def test_an_account_is_held_by_an_owner_on_the_list_or_is_itself_on_it():
    def to(holder: str) -> Effect:
        return msgspec.structs.replace(PAID, to=holder, unowned=False)

    assert with_holder(PAID, "a", "b") == to("a")
    assert with_holder(OWNED, "account") == to("account")
    # Nobody on the list, or one who was named already.
    assert with_holder(PAID) == PAID
    assert with_holder(OWNED, "a") == OWNED
    assert with_holder(OWNED, "owner", "account") == OWNED
    # An account on the list is itself, even beside others on it.
    other = msgspec.structs.replace(PAID, to="elsewhere")
    assert with_holder(other, "a", "account") == to("account")
    # As many tries as are allowed, and one more.
    assert with_holder(PAID, "a", "b", "c", most=3) == to("a")
    assert with_holder(PAID, "a", "b", "c", most=2) == PAID
    native_ = msgspec.structs.replace(PAID, account=None)
    assert with_holder(native_, "a") == native_


def test_the_tries_of_an_order_are_shared_by_its_lists():
    known = facts()
    assert [with_share(known, count).owners_tried for count in (0, 1, 2, 3)] == [
        MOST_OWNERS_TRIED, MOST_OWNERS_TRIED, MOST_OWNERS_TRIED // 2, MOST_OWNERS_TRIED // 3
    ]  # fmt: skip


LISTED = rule("message-allowlist", {"siweDomains": ["other.example.com"]}, id="named", enabled=False)
LIMIT = rule("spending-limit", {"maxPerDay": "9", "asset": TOKEN}, id="limit", enabled=False)


@pytest.mark.parametrize(("named", "decision"), [("named", "queue"), ("limit", "queue"), ("", "sign")])
def test_a_named_rule_asks_for_a_message_as_if_it_were_enabled(named, decision):
    set_, said = rules(LISTED, LIMIT), message("a text that no list has")
    assert judge(set_, said, facts()).decision == "sign"
    assert narrow(set_, said, facts(), {named} - {""}).decision == decision


def test_a_message_evades_named_rules_where_no_list_lists_it():
    (limit,) = rules(msgspec.structs.replace(LIMIT, enabled=True))
    said = message("a text that no list has")
    reason = "no enabled message-allowlist lists the message; a person must approve it"
    assert judge_evaded([limit], said, facts()) == [(Result("message-allowlist", False, reason), "queue")]
    refused = judge_evaded([limit], said, facts(uncovered="refuse"))
    assert [outcome for _, outcome in refused] == ["refuse"]


def test_a_cap_on_plain_payments_holds_beside_another_call_of_a_batch():
    """Also where that call, of the same contract, sends coins along within its own cap."""
    entry = {"address": TOKEN_CONTRACT, "selectors": [TRANSFER], "constraints": {TRANSFER: {"maxNativeValueWei": "4"}}}
    (parsed,) = rules(rule("contract-allowlist", {"contracts": [entry]}))
    calls = token_call(5, value=3), native(4, TOKEN_CONTRACT)
    assert parsed.terms.check(batch(*calls), facts())[0]
    passed, reason = parsed.terms.check(batch(calls[0], native(5, TOKEN_CONTRACT)), facts())
    assert not passed
    assert reason.startswith("call 2: 5 wei to ")
