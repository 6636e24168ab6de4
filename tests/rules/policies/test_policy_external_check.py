"""external-check: only a fresh answer by a pinned key, for this very order, allows; nothing else ever does.

The service signs with another library than the one that checks.
"""

import hashlib
from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.keypair import Keypair

from custody.policies.fleet import EVERY_AGENT, judge_all
from custody.policies.judge import judge
from custody.policies.tighten import widening
from custody.policies.types import CheckAnswer, InvalidPolicy
from signer.ed25519 import verify
from tests.rules.policies.makers import ALICE, BOB, NOON, facts, native, rule, rules, unread_call

SERVICE, STRANGER = Keypair.from_seed(bytes(32)), Keypair.from_seed(bytes([1]) * 32)
NOW = int(NOON.timestamp())
ORDER = ("tenant", "agent", "11111111-1111-4111-8111-111111111111")


def key_of(pair: Keypair) -> str:
    return b64encode(bytes(pair.pubkey())).decode()


def checks(*others, keys=(SERVICE,), **config):
    said = {"url": "https://check.example.com/", "publicKeys": [key_of(one) for one in keys], **config}
    return rules(rule("external-check", said, id="check"), *others)


def question_of(order, of=ORDER) -> bytes:
    [asks] = checks()
    asked = asks.terms.question(order, facts(order=of, answers=()))
    assert asked is not None
    return asked.body


def answer(order, decision="allow", *, by=SERVICE, at=NOW, body=None, of=ORDER, line=b"custody-external-check-v1\n"):
    question = hashlib.sha256(question_of(order, of)).hexdigest()
    said = msgspec.json.encode({"decision": decision, "at": at}) if body is None else body
    signature = bytes(by.sign_message(line + question.encode() + b"\n" + said))
    return CheckAnswer(question, said, signature)


def decide(order, answers, set_=None, **more):
    return judge(set_ or checks(), order, facts(order=ORDER, answers=answers, verify=verify, **more))


@pytest.mark.parametrize(("decision", "becomes"), [("allow", "sign"), ("ask", "queue"), ("refuse", "refuse")])
@pytest.mark.parametrize("failing", ["ask", "refuse"])
def test_the_service_decides(decision, becomes, failing):
    verdict = decide(native(5), (answer(native(5), decision),), checks(onFailure=failing))

    assert verdict.decision == becomes


def test_a_reason_of_the_service_stands_in_the_result():
    said = answer(native(5), body=b'{"decision":"ask","at":%d,"reason":"who is that?"}' % NOW)

    [result] = decide(native(5), (said,)).results
    assert result.reason == "the external check asks for a person: who is that?"


# What each is: how it differs from an answer that counts.
NO_ANSWERS = {
    "none": lambda: (),
    "by another key": lambda: (answer(native(5), by=STRANGER),),
    "to another amount": lambda: (answer(native(6)),),
    "to another recipient": lambda: (answer(native(5, BOB)),),
    "for another transaction": lambda: (answer(native(5), of=(*ORDER[:2], ORDER[2][::-1])),),
    "for another agent": lambda: (answer(native(5), of=("tenant", "other", ORDER[2])),),
    "for another tenant": lambda: (answer(native(5), of=("other", *ORDER[1:])),),
    "said to be for this one": lambda: (
        msgspec.structs.replace(answer(native(6)), question=answer(native(5)).question),
    ),
    "of two minutes ago": lambda: (answer(native(5), at=NOW - 121),),
    "of in two minutes": lambda: (answer(native(5), at=NOW + 121),),
    "signed without its line": lambda: (answer(native(5), line=b""),),
    "changed behind the signature": lambda: (msgspec.structs.replace(answer(native(5), "refuse"), body=b"{}"),),
    "without a signature": lambda: (msgspec.structs.replace(answer(native(5)), signature=b""),),
    "with a short signature": lambda: (msgspec.structs.replace(answer(native(5)), signature=bytes(63)),),
    "with a signature of nothing": lambda: (msgspec.structs.replace(answer(native(5)), signature=bytes(64)),),
}
UNREADABLE = [
    b"",
    b"allow",
    b"null",
    b"[]",
    b"{}",
    b'{"decision":"allow"}',
    b'{"decision":"ALLOW","at":%d}' % NOW,
    b'{"decision":["allow"],"at":%d}' % NOW,
    b'{"decision":"allow","at":"%d"}' % NOW,
    b'{"decision":"allow","at":%d.5}' % NOW,
    b'{"decision":"allow","at":true}',
    b'{"decision":"allow","at":-1}',
    b'{"decision":"allow","at":1e400}',
    b'{"decision":"allow","at":%d,"more":1}' % NOW,
    b'{"decision":"refuse","decision":"allow","at":%d}' % NOW,
    b'{"decisio\\u006e":"refuse","decision":"allow","at":%d}' % NOW,
    b'{"decision":"allow","at":%d}{}' % NOW,
    b'{"decision":"allow","at":%d,"reason":"two\\nlines"}' % NOW,
    b'{"decision":"allow","at":%d,"reason":"%s"}' % (NOW, b"x" * 201),
    b'\xef\xbb\xbf{"decision":"allow","at":%d}' % NOW,
    b'{"decision":"allow","at":%d,"reason":"\xff"}' % NOW,
    b"[" * 2_000,
]


@pytest.mark.parametrize("name", NO_ANSWERS)
@pytest.mark.parametrize(("failing", "becomes"), [("ask", "queue"), ("refuse", "refuse")])
def test_an_answer_that_does_not_count_allows_nothing(name, failing, becomes):
    assert decide(native(5), NO_ANSWERS[name](), checks(onFailure=failing)).decision == becomes


@pytest.mark.parametrize("body", UNREADABLE)
@pytest.mark.parametrize(("failing", "becomes"), [("ask", "queue"), ("refuse", "refuse")])
def test_a_signed_answer_that_cannot_be_read_allows_nothing(body, failing, becomes):
    assert decide(native(5), (answer(native(5), body=body),), checks(onFailure=failing)).decision == becomes


@given(st.binary(max_size=80), st.binary(max_size=64))
def test_no_drawn_answer_allows(body, signature):
    said = CheckAnswer(hashlib.sha256(question_of(native(5))).hexdigest(), body, signature)

    assert decide(native(5), (said,)).decision == "queue"


def test_the_word_of_one_service_counts_for_no_other():
    other = rule("external-check", {"url": "https://other.example.com/", "publicKeys": [key_of(SERVICE)]}, id="other")

    assert decide(native(5), (answer(native(5)),), checks(other)).decision == "queue"


def test_the_right_answer_among_wrong_ones_is_found():
    wrong = [make()[0] for name, make in NO_ANSWERS.items() if name != "none" and "minutes" not in name]

    assert decide(native(5), (*wrong, answer(native(5)))).decision == "sign"


def test_a_second_key_counts_as_the_first():
    both = checks(keys=(STRANGER, SERVICE))

    found = [decide(native(5), (answer(native(5), by=one),), both).decision for one in (SERVICE, STRANGER)]
    assert found == ["sign", "sign"]


def test_before_it_is_asked_a_person_would_decide_and_nothing_is_refused():
    assert decide(native(5), None, checks(onFailure="refuse")).decision == "queue"


def test_an_order_that_a_person_approves_is_signed_without_an_answer():
    for failing in ("ask", "refuse"):
        assert decide(native(5), (), checks(onFailure=failing), approving=True).decision == "sign"


def test_an_order_that_the_service_refuses_is_waved_through_by_nobody():
    assert decide(native(5), (answer(native(5), "refuse"),), approving=True).decision == "refuse"


def test_an_order_that_waited_for_its_time_is_a_persons():
    assert decide(native(5), (), checks(onFailure="refuse"), waited=600).decision == "queue"


def test_another_rule_is_not_overruled():
    beside = rule("approved-addresses", {"addresses": [BOB]})

    assert decide(native(5), (answer(native(5)),), checks(beside)).decision == "refuse"


def test_an_order_that_another_rule_refuses_stays_refused_though_the_service_asks():
    beside = rule("approved-addresses", {"addresses": [BOB]})

    assert decide(native(5), (answer(native(5), "ask"),), checks(beside), approving=True).decision == "refuse"


@pytest.mark.parametrize(("decision", "becomes"), [("allow", "sign"), ("ask", "queue"), ("refuse", "refuse")])
def test_a_check_of_the_tenant_binds_an_agent_that_has_none(decision, becomes):
    of_tenant = tuple(msgspec.structs.replace(one, policy_set=EVERY_AGENT) for one in checks())
    said = facts(order=ORDER, answers=(answer(native(5), decision),), verify=verify)

    assert judge_all(of_tenant, native(5), said, ()).decision == becomes


def test_an_order_too_large_to_ask_about_is_a_persons():
    many = msgspec.structs.replace(native(5), effects=native(5).effects * 2_000)
    [asks] = checks()

    assert asks.terms.question(many, facts(order=ORDER)) is None
    assert decide(many, ()).decision == "queue"


def test_a_question_names_the_order_and_what_its_bytes_do():
    assert msgspec.json.decode(question_of(native(5))) == {
        "version": 1,
        "url": "https://check.example.com/",
        "tenantId": ORDER[0],
        "agentId": ORDER[1],
        "transactionId": ORDER[2],
        "kind": "evm",
        "chain": "eip155:1",
        "destination": ALICE,
        "effects": [
            {"kind": "transfer", "amount": "5", "asset": "evm:native", "sender": BOB, "recipient": ALICE},
            {"kind": "fee", "amount": "7", "asset": "evm:native"},
        ],
    }


def test_a_call_that_cannot_be_read_is_told_as_unread():
    effects = msgspec.json.decode(question_of(unread_call()))["effects"]

    assert "unread" in {effect["kind"] for effect in effects}


@pytest.mark.parametrize(
    ("changes", "is_tighter"),
    [
        ({}, True),
        ({"onFailure": "refuse", "timeoutSeconds": 8}, True),
        ({"url": "https://other.example.com/"}, False),
        ({"publicKeys": [key_of(STRANGER)]}, False),
        ({"publicKeys": [key_of(SERVICE), key_of(STRANGER)]}, False),
    ],
)
def test_the_same_service_by_no_other_key_is_tighter(changes, is_tighter):
    assert (widening(checks(), checks(**changes), empty_policy="allow") is None) is is_tighter


def test_a_key_less_and_refusing_is_tighter_and_asking_instead_is_not():
    wide, narrow = checks(keys=(SERVICE, STRANGER)), checks(onFailure="refuse")

    assert widening(wide, narrow, empty_policy="allow") is None
    assert widening(narrow, checks(), empty_policy="allow") is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://check.example.com/",
        "ftp://check.example.com/",
        "https://user:pass@check.example.com/",
        "https://check.example.com/#part",
        "https://Check.example.com/",
        "check.example.com/orders",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused(url):
    with pytest.raises(InvalidPolicy, match="`url` cannot be asked"):
        checks(url=url)


def test_a_key_that_anybody_can_sign_for_is_refused():
    # The neutral element as the key: of its equation the message falls out.
    weak = b64encode(b"\1" + bytes(31)).decode()

    with pytest.raises(InvalidPolicy, match="anybody can make signatures"):
        checks(publicKeys=[weak])
    with pytest.raises(InvalidPolicy, match="anybody can make signatures"):
        checks(publicKeys=[b64encode(b"\1" + bytes(30) + b"\x80").decode()])
