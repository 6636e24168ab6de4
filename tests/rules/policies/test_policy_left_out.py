"""The meaning of silence: fields that may be left out, the bounds of a set, and the words of results."""

import msgspec
import pytest
from msgspec import UNSET

from custody.chains.units import NO_UNITS, SOLANA_RENT
from custody.policies import judge as judging
from custody.policies.assets import say_amount
from custody.policies.coverage import WITHIN, Coverage
from custody.policies.kind import NOTHING_WANTED, Covers, Limit, Rule, Wants
from custody.policies.kinds import KINDS
from custody.policies.kinds.contract_entries import DEFAULT_UNREAD, Constraint, Entry
from custody.policies.kinds.spending_limit import SpendingLimit
from custody.policies.kinds.time_window import TimeWindow
from custody.policies.rules import ParsedRule, canonical, check_size
from custody.policies.sources import both_types
from custody.policies.types import Facts, InvalidPolicy, Result, Verdict, decode_results, verify_nothing
from custody.policies.user_wallets import VARIABLE
from tests.rules.policies.makers import NOON, native, rule, rules, typed_rules

LEFT_OUT = {
    Wants: {"spend": frozenset(), "totals": frozenset(), "rates": False, "recipients": False},
    Limit: {"alert_percents": ()},
    Covers: {
        "assets": frozenset(),
        "calls": None,
        "recipients": False,
        "named": False,
        "messages": None,
        "policy_set": None,
    },
    Coverage: {"messages": (), "policy_sets": frozenset()},
    Constraint: dict.fromkeys(
        ("recipients", "no_recipients", "spenders", "no_spenders", "max_amount", "max_native", "where"), None
    ),
    # Unless it says so, an entry lets nothing pass that nobody can read.
    Entry: {"allows_unread": False, "typed": None},
    SpendingLimit: {"rent_per_day": None, "total": None, "scope": "agent"},
    TimeWindow: {"begin": None, "end": None},
    ParsedRule: {"by_agent": False, "until": None, "policy_set": ""},
    Rule: {"id": None, "source": UNSET},
    Result: {"policy_id": None},
    Facts: {
        "spend": {},
        "floor": {},
        "worth": {},
        "orders_last_hour": 0,
        "orders_last_day": 0,
        "minutes": (),
        "hours": (),
        "empty_policy": "allow",
        "uncovered": "queue",
        "units": NO_UNITS,
        "shared": {},
        "approving": False,
        "owners_tried": 256,
        "votes": frozenset(),
        "recipients": frozenset(),
        "waited": 0,
        "order": ("", "", ""),
        "answers": None,
        "verify": verify_nothing,
    },
    Verdict: {"refused_by": None, "room": None, "alerts": ()},
}


def default_of(field: msgspec.structs.FieldInfo):
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


@pytest.mark.parametrize("kind", LEFT_OUT, ids=lambda kind: kind.__name__)
def test_a_field_that_is_left_out_means(kind):
    found = {field.name: default_of(field) for field in msgspec.structs.fields(kind) if not field.required}
    # None, False, 0 and nothing are told apart.
    assert {name: repr(value) for name, value in found.items()} == {n: repr(v) for n, v in LEFT_OUT[kind].items()}


def test_a_rule_that_looks_nothing_up_wants_nothing():
    assert Wants() == NOTHING_WANTED


@pytest.mark.parametrize("name", KINDS)
def test_a_field_that_nobody_knows_is_refused_at_every_depth(name):
    pending, seen = [msgspec.inspect.type_info(KINDS[name])], []
    while pending:
        found = pending.pop()
        if isinstance(found, msgspec.inspect.StructType):
            seen.append(found.cls.__name__)
            assert found.cls.__struct_config__.forbid_unknown_fields, found.cls
            pending += [field.type for field in found.fields]
        inner = [getattr(found, part, None) for part in ("type", "item_type", "key_type", "value_type")]
        pending += [one for one in (*inner, *getattr(found, "types", ())) if isinstance(one, msgspec.inspect.Type)]
    assert len(seen) >= 2


def test_a_rule_is_hard_or_soft_and_keeps_limits_or_none():
    assert {name: repr((kind.hard, kind.keeps_limits)) for name, kind in KINDS.items()} == {
        "spending-limit": "(True, True)",
        "approved-addresses": "(True, False)",
        "auto-approve-threshold": "(False, False)",
        "time-window": "(True, False)",
        "rate-limit": "(True, False)",
        "allowed-chains": "(True, False)",
        "contract-allowlist": "(True, False)",
        "approval-quorum": "(False, False)",
        "message-allowlist": "(False, False)",
        "policy-set": "(True, False)",
        "new-recipient": "(False, False)",
        "delay": "(False, False)",
        "circuit-breaker": "(False, False)",
        "external-check": "(True, False)",
    }


def test_the_words_that_others_read_stay():
    own = (judging.UNCOVERED_EFFECT, judging.EMPTY_POLICY, judging.ALLOWED_CHAINS)
    assert own == ("uncovered-effect", "empty-policy", "allowed-chains")
    assert (WITHIN, SOLANA_RENT, DEFAULT_UNREAD) == ("around the calls within", "solana:rent", "ask")
    assert both_types(["time-window"]) == ["time-window", "time-window@agent"]
    assert VARIABLE == "SERVICE_USER_WALLET_POLICIES_FILE"


def test_stored_results_are_read_with_and_without_their_rule():
    stored = b'[{"type":"a","passed":true,"reason":"b","policyId":"c"},{"type":"a","passed":false,"reason":"b"}]'
    assert decode_results(stored) == [Result("a", True, "b", "c"), Result("a", False, "b")]
    assert msgspec.json.decode(msgspec.json.encode(Result("a", True, "b", "c")))["policyId"] == "c"


def test_an_asset_without_spend_has_all_of_its_limit():
    limited = rules(rule("spending-limit", {"maxPerDay": "100", "maxPerWeek": "100"}))
    bare = Facts(now=NOON)
    assert judging.judge(limited, native(100), bare).decision == "sign"
    assert judging.judge(limited, native(101), bare).decision == "refuse"
    (limits,) = {one.alert_percents for one in limited[0].terms.limits("evm")}
    assert limits == (80, 100)


def test_bitcoin_is_told_in_its_coin():
    assert "1.5 BTC" in say_amount(150_000_000, "bitcoin")


# ---- the bounds of a set, each as the last that passes and the first that does not


def hours(number):
    return rule("time-window", {"timezone": "UTC", "allowedDays": [number % 7]}, id=f"rule-{number}")


def test_a_set_has_fifty_rules_at_most():
    assert len(rules(*map(hours, range(50)))) == 50
    with pytest.raises(InvalidPolicy, match="at most 50 rules; this one has 51"):
        rules(*map(hours, range(51)))


def test_a_set_has_a_thousand_values_at_most():
    def list_of(values):
        addresses = [f"0x{number:040x}" for number in range(1, values + 1)]
        return rule("approved-addresses", {"addresses": addresses})

    assert len(rules(list_of(1_000))) == 1
    with pytest.raises(InvalidPolicy, match="this one has 1,001"):
        rules(list_of(1_001))


def test_a_set_has_64_kib_at_most_with_the_ids_that_it_gets():
    def size(last: int) -> int | None:
        """Measure the rules as they are kept; None where they are refused."""
        lists = (["a" * 1024] * 48, [*["b" * 1000] * 15, "b" * last])
        sent = typed_rules(*(rule("message-allowlist", {"patterns": patterns}) for patterns in lists))
        try:
            check_size(sent)
        except InvalidPolicy:
            return None
        kept = [
            f'{{"config":{canonical(one.config)},"enabled":false,"id":"{"i" * 36}","type":"{one.type}"}},'
            for one in sent
        ]
        return len("".join(kept))

    passing = [found for last in range(16, 1025) if (found := size(last)) is not None]
    assert 0 < len(passing) < 1009
    assert passing[-1] == 64 * 1024


@pytest.mark.parametrize(
    ("field", "most", "one"),
    [
        ("siweDomains", 100, "site-{}.example"),
        ("siwsDomains", 100, "site-{}.example"),
        ("patterns", 50, "Hello, dear number {}"),
    ],
)
def test_a_list_of_messages_has_so_many_at_most(field, most, one):
    def list_of(number):
        return rule("message-allowlist", {field: [one.format(place) for place in range(number)]})

    assert len(rules(list_of(most))) == 1
    with pytest.raises((InvalidPolicy, msgspec.ValidationError)):
        rules(list_of(most + 1))
