"""Rules of policies in words: nothing that is stored is hidden, whatever it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.rules.rule_terms import Names
from console.rules.rules_in_words import rule_in_words, rules_in_words
from words.shapes import PolicyRule, TokenFunds

A, B = "0x" + "aB" * 20, "0x" + "22" * 20
SOLANA = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
TOKEN = "evm:8453:" + B


def words(kind: str, *, enabled: bool = True, names: Names | None = None, **config: Any) -> list[str]:
    """The lines of one rule, without the indent of all."""
    rule = PolicyRule(type=kind, enabled=enabled, config=config)
    return [line.text.removeprefix("   ") for line in rule_in_words(rule, names or Names(), 1)]


def test_a_limit_on_one_chain_is_told_in_its_coin() -> None:
    assert words("spending-limit", asset="evm:137:native", maxPerDay="2000000000000000000")[1:3] == [
        "counts POL on Polygon (137)",
        "at most 2 POL (2,000,000,000,000,000,000 wei) in any 24 hours",
    ]
    assert words("auto-approve-threshold", asset="evm:7:native", threshold="1000000000000000000")[1:3] == [
        "counts coins of chain 7 on chain 7",
        "above 1 coin of chain 7 (1,000,000,000,000,000,000 wei) a person must approve",
    ]


def test_a_rule_of_votes_says_who_must_vote_with_which_keys() -> None:
    approvers = [{"userId": "u-1", "keys": ["ab" * 4]}, {"userId": "u-2", "keys": ["cd" * 4]}]

    assert words("approval-quorum", threshold=2, approvers=approvers, above="5", asset="evm:native") == [
        "1. Votes of named people: enabled, soft: asks named people",
        "needs votes of 2 of 2 named people",
        "for orders above 0.000000000000000005 coins (5 wei)",
        "up to that, no votes are needed by this rule",
        "user u-1, with a key of fingerprint:",
        "  abab abab",
        "user u-2, with a key of fingerprint:",
        "  cdcd cdcd",
        "only votes loosen the rules while this one is enabled",
    ]
    assert words("approval-quorum", threshold=1, approvers=[{"userId": 7}])[1:3] == [
        "votes needed: 1",
        "for every order",
    ]


def test_a_limit_says_how_much_rent_it_allows() -> None:
    said = words("spending-limit", asset="solana:native", maxPerDay="1", maxRentPerDay="5000000")

    assert said[3:5] == [
        "at most 0.005 SOL (5,000,000 lamports) of rent for new token accounts in any 24 hours",
        "up to that, no approval is needed for the rent",
    ]


def test_a_limit_says_each_window_in_human_and_raw_units() -> None:
    said = words(
        "spending-limit",
        asset="evm:native",
        maxPerTransaction="500000000000000000",
        maxPerDay="2000000000000000000",
        maxPerWeek="3",
    )

    assert said == [
        "1. Spending limit: enabled, hard: refuses",
        "counts native coins of all EVM chains (ETH and others) together",
        "at most 0.5 coins (500,000,000,000,000,000 wei) in one transaction",
        "at most 2 coins (2,000,000,000,000,000,000 wei) in any 24 hours",
        "at most 0.000000000000000003 coins (3 wei) in any 7 days",
    ]


def test_a_limit_without_asset_says_what_its_number_is_on_each_family() -> None:
    said = words("spending-limit", maxPerTx="1000000000")

    assert said[2:] == [
        "at most 0.000000001 coins (1,000,000,000 wei) on EVM chains in one transaction",
        "at most 1 SOL (1,000,000,000 lamports) on Solana in one transaction",
        "at most 10 BTC (1,000,000,000 sat) on Bitcoin in one transaction",
    ]


def test_a_number_meant_in_wei_is_said_to_limit_nothing_elsewhere() -> None:
    spent = words("spending-limit", maxPerDay="2000000000000000000")
    asked = words("auto-approve-threshold", threshold="1000000000000000000")

    assert spent[2:] == [
        "at most 2 coins (2,000,000,000,000,000,000 wei) on EVM chains in any 24 hours",
        "on Solana it limits nothing in any 24 hours: 2,000,000,000 SOL is more than there is",
        "on Bitcoin it limits nothing in any 24 hours: 20,000,000,000 BTC is more than there is",
    ]
    assert asked[2:5] == [
        "above 1 coin (1,000,000,000,000,000,000 wei) on EVM chains a person must approve",
        "on Solana it asks nobody: 1,000,000,000 SOL is more than there is",
        "on Bitcoin it asks nobody: 10,000,000,000 BTC is more than there is",
    ]


def test_a_limit_on_a_token_names_it_in_full_and_quotes_what_it_calls_itself() -> None:
    token = TokenFunds(address=B, symbol="USDC", decimals=6)

    said = words("spending-limit", names=Names({TOKEN: token}), asset=TOKEN, maxPerDay="5000000")

    assert said[1:] == [
        f'counts the token {B} on Base (8453), which calls itself "USDC"',
        "at most 5 (5,000,000 raw units) in any 24 hours",
    ]


def test_a_token_of_which_nothing_is_known_is_counted_raw() -> None:
    assert "5,000,000 raw units" in words("spending-limit", asset=TOKEN, maxPerDay="5000000")[2]


def test_the_shares_at_which_webhooks_are_told() -> None:
    assert (
        words("spending-limit", maxPerDay="1", alertPercents=[50, 90])[-1]
        == "notifies the tenant's webhooks at 50% and 90%"
    )


def test_a_threshold_is_soft_and_says_above_what_a_person_is_asked() -> None:
    said = words("auto-approve-threshold", asset="solana:native", threshold="1500000000")

    assert said == [
        "1. Threshold for a person: enabled, soft: asks a person",
        "counts SOL",
        "above 1.5 SOL (1,500,000,000 lamports) a person must approve",
        "up to that, no approval is needed by this rule",
    ]


@pytest.mark.parametrize(
    ("config", "head"),
    [
        ({}, "may pay, and allow to spend, only:"),
        ({"mode": "whitelist"}, "may pay, and allow to spend, only:"),
        ({"mode": "blacklist"}, "may not pay, call, or allow to spend:"),
        ({"mode": "odd"}, "lists, in an unknown mode:"),
        ({"mode": 1}, "lists, in an unknown mode:"),
    ],
    ids=["default", "whitelist", "blacklist", "odd", "no text"],
)
def test_a_list_has_each_address_in_full_on_its_line(config: dict[str, Any], head: str) -> None:
    said = words("approved-addresses", addresses=[A, SOLANA], **config)

    assert said[1] == head
    assert f"  {A}" in said
    assert f"  {SOLANA}" in said


def test_an_address_of_an_agent_is_named() -> None:
    names = Names(addresses={A.lower(): 'agent "Payroll"'})

    assert f'  {A}  (agent "Payroll")' in words("approved-addresses", names=names, addresses=[A])


@pytest.mark.parametrize(
    ("mode", "meaning"),
    [("whitelist", "may pay no address: its list is empty"), ("blacklist", "blocks no address: its list is empty")],
)
def test_an_empty_list_says_what_it_means(mode: str, meaning: str) -> None:
    assert words("approved-addresses", addresses=[], mode=mode)[1:] == [meaning]


def test_a_window_has_days_from_monday_hours_and_the_zone() -> None:
    said = words("time-window", allowedHours=[{"start": 9, "end": 17}], allowedDays=[0, 5, 1], timezone="Europe/Berlin")

    assert said[1:] == [
        "hours: 09:00 until 17:00",
        "days: Monday, Friday, Sunday",
        "on the clocks of Europe/Berlin",
    ]


def test_a_window_says_from_when_and_until_when_it_is_open() -> None:
    said = words("time-window", notBefore="2026-01-01T00:00:00Z", notAfter="2026-02-01T00:00:00+01:00")

    assert said[1:] == [
        "hours: any",
        "days: any",
        "on the clocks of UTC",
        "nothing is signed before 2026-01-01T00:00:00Z",
        "nothing is signed any more from 2026-02-01T00:00:00+01:00",
    ]


def test_hours_over_midnight_are_said_as_the_two_parts_of_one_day_that_they_are() -> None:
    said = words("time-window", allowedHours=[{"start": 22, "end": 6}])

    assert said[1:] == [
        "hours: 22:00 until 24:00 and 00:00 until 06:00",
        "days: any",
        "on the clocks of UTC",
    ]


def test_a_rate() -> None:
    assert words("rate-limit", maxTxPerHour=1, maxTxPerDay=1_000)[1:3] == [
        "at most 1 order in any hour",
        "at most 1,000 orders in any day",
    ]


MAINNET = "bip122:000000000019d6689c085ae165831e93"


def test_chains_have_names_and_the_number_that_is_stored() -> None:
    said = words("allowed-chains", chains=[1, "eip155:8453", 102, "bitcoin:regtest", 99, "eip155:101", MAINNET])

    assert said[1:] == [
        "only on:",
        "  Ethereum (1)",
        "  Base (eip155:8453)",
        "  Solana Devnet (test network) (102)",
        "  Bitcoin regtest (test network) (bitcoin:regtest)",
        "  chain 99",
        "  chain eip155:101",
        f"  Bitcoin ({MAINNET})",
    ]


def test_a_contract_has_its_calls_and_what_each_may_do() -> None:
    entry = {
        "address": A,
        "chainId": 8453,
        "selectors": ["a9059cbb", "0xDEADBEEF"],
        "constraints": {
            "0xA9059CBB": {
                "recipientAllowlist": [B],
                "spenderBlocklist": [],
                "maxAmount": "50",
                "maxNativeValueWei": "0",
            },
        },
    }

    said = words("contract-allowlist", contracts=[entry])

    assert said[1:] == [
        "may call only:",
        f"  {A} on Base (8453)",
        "    call 0xa9059cbb (transfer)",
        "      only to:",
        f"        {B}",
        "      its list of blocked spenders is empty",
        "      at most 50 raw units (decimals unknown) of its token each time",
        "      with at most 0 coins (0 wei) each time",
        "    call 0xdeadbeef, whatever it does",
    ]


def test_a_call_has_conditions_on_its_arguments() -> None:
    where = [
        {"arg": "to", "op": "in", "values": [A, B]},
        {"arg": "amount", "op": "lte", "value": "500"},
        {"arg": "memo", "op": "ne", "value": "\x1b[2J\u202e"},
        {"arg": "x", "op": "like", "value": "1"},
        {"arg": "y", "op": "eq", "value": "1", "values": ["2"]},
    ]
    abi = "pay(address to,uint256 amount,string memo)"
    entry = {"address": A, "selectors": ["0xdeadbeef"], "constraints": {"0xdeadbeef": {"abi": abi, "where": where}}}

    said = words("contract-allowlist", contracts=[entry], names=Names(addresses={B: "shop"}))

    assert said[3:] == [
        "    call 0xdeadbeef",
        f"      only if it can be read as {abi}, and",
        "        to is one of:",
        f"          {A}",
        f"          {B}  (shop)",
        "        amount is at most 500",
        '        memo is not "\\u001b[2J\u202e"',
        '        a condition that is unknown to this console: {"arg":"x","op":"like","value":"1"}',
        '        a condition that is unknown to this console: {"arg":"y","op":"eq","value":"1","values":["2"]}',
    ]


def test_a_contract_has_the_kinds_of_typed_data_that_are_signed_for_it() -> None:
    kinds = [
        {"type": "Ping(uint256 nonce)"},
        {"type": "Pay(address to)", "where": [{"arg": "to", "op": "eq", "value": A}]},
    ]

    some = words("contract-allowlist", contracts=[{"address": A, "selectors": [], "typedData": kinds}])
    none = words("contract-allowlist", contracts=[{"address": A, "selectors": [], "typedData": []}])

    assert some[3:] == [
        "    typed data is signed for it only of:",
        "      Ping(uint256 nonce)",
        "      Pay(address to)",
        f"        to is {A}",
    ]
    assert none[3:] == ["    no typed data is signed for it: its list is empty"]


@pytest.mark.parametrize(
    ("word", "line", "tone"),
    [
        ("ask", "    bytes that nobody can decode need approval", None),
        (
            "allow",
            "    ! bytes that nobody can decode pass WITHOUT APPROVAL: it may do anything with them",
            "bad",
        ),
        ("maybe", '    bytes that nobody can decode: "maybe", unknown to this console', "warn"),
    ],
)
def test_an_entry_that_lets_unread_bytes_pass_is_a_danger(word: str, line: str, tone: str | None) -> None:
    entry = {"address": A, "selectors": ["0xdeadbeef"], "unread": word}
    rule = PolicyRule(type="contract-allowlist", enabled=True, config={"contracts": [entry]}, id="a")

    assert [one.tone for one in rules_in_words([rule]) if one.text.strip() == line.strip()] == [tone]


def test_an_empty_allowlist_lets_nothing_be_called() -> None:
    assert words("contract-allowlist", contracts=[])[1:] == ["no contract may be called: its list is empty"]


def test_a_rule_for_messages_says_where_to_sign_in_and_which_texts_are_signed() -> None:
    said = words(
        "message-allowlist",
        siweDomains=["app.example.com", "localhost:3000"],
        siwsDomains=["xn--pple-43d.com"],
        patterns=["Example: log in as *", "two\\n* lines"],
    )

    assert said == [
        "1. Messages: enabled, soft: asks a person",
        "its EVM wallet may sign in, as often as it likes, to:",
        "  app.example.com",
        "  localhost:3000",
        "its Solana wallet may sign in, as often as it likes, to:",
        "  xn--pple-43d.com",
        "either wallet may sign texts like these, where * is anything on its line:",
        "  | Example: log in as *",
        "  | two\\n* lines",
        "every other message needs approval",
    ]


@pytest.mark.parametrize("config", [{}, {"siweDomains": [], "siwsDomains": [], "patterns": []}], ids=["none", "empty"])
def test_a_rule_that_lists_no_message_asks_about_each(config: dict[str, Any]) -> None:
    assert words("message-allowlist", **config)[1:] == ["every message needs approval"]


@pytest.mark.parametrize("name", ["siweDomains", "siwsDomains", "patterns"])
@pytest.mark.parametrize(
    "value", ["a.example", None, ["a.example", 5], {"a": 1}], ids=["text", "null", "odd", "object"]
)
def test_a_list_of_messages_that_is_not_understood_is_not_said_to_list_none(name: str, value: object) -> None:
    said = words("message-allowlist", **{name: value})

    assert len(said) == 2
    assert said[1].startswith(f"also stored, unknown to this console: {name} = ")


def test_a_pattern_of_any_length_is_one_line_and_says_how_long_it_is() -> None:
    assert words("message-allowlist", patterns=["W" * 5_000])[2] == f"  | {'W' * 1_024}… (5,000 characters)"


def test_a_disabled_rule_says_that_it_judges_nothing() -> None:
    assert words("rate-limit", enabled=False, maxTxPerDay=1)[0] == "1. Rate limit: DISABLED, not evaluated"


def test_an_unknown_type_is_shown_as_it_is_stored() -> None:
    assert words("future-rule", level=3, zones=["a"]) == [
        "1. future-rule: enabled, effect unknown to this console",
        "unknown type of rule",
        "also stored, unknown to this console: level = 3",
        'also stored, unknown to this console: zones = ["a"]',
    ]


@pytest.mark.parametrize(
    ("kind", "config", "shown"),
    [
        ("spending-limit", {"maxPerDay": "1", "maxPerMonth": "9"}, 'maxPerMonth = "9"'),
        ("spending-limit", {"maxPerDay": 7}, "maxPerDay = 7"),
        ("spending-limit", {"maxPerDay": "1", "asset": ["x"]}, 'asset = ["x"]'),
        ("auto-approve-threshold", {"threshold": "-1"}, 'threshold = "-1"'),
        ("rate-limit", {"maxTxPerHour": True}, "maxTxPerHour = true"),
        ("allowed-chains", {"chains": [1, None]}, "chains = [1,null]"),
        ("time-window", {"allowedHours": [{"start": 9, "end": 99}]}, 'allowedHours = [{"start":9,"end":99}]'),
        ("time-window", {"allowedDays": [7]}, "allowedDays = [7]"),
        ("approved-addresses", {"addresses": [A, 5]}, f'addresses = ["{A}",5]'),
        ("contract-allowlist", {"contracts": ["x"]}, 'contracts = ["x"]'),
        ("message-allowlist", {"siweDomains": ["a.example"], "until": 5}, "until = 5"),
        ("contract-allowlist", {"contracts": [{"address": A, "selectors": "all"}]}, 'selectors = "all"'),
        ("contract-allowlist", {"contracts": [{"address": A, "selectors": [], "constraints": {"0x1": 5}}]}, "0x1: 5"),
    ],
    ids=range(13),
)
def test_an_unknown_rule_is_shown_as_it_is(kind: str, config: dict[str, Any], shown: str) -> None:
    assert any(shown in line for line in words(kind, **config))


def test_hours_that_are_not_understood_are_not_said_to_be_any() -> None:
    assert not any("any" in line for line in words("time-window", allowedHours="none", allowedDays=[1]))


def test_an_asset_that_is_not_understood_is_not_said_to_be_the_coin() -> None:
    assert "coins" not in " ".join(words("spending-limit", asset=5, maxPerDay="1"))


def test_a_rule_as_it_is_stored_is_clipped_and_says_how_long_it_is() -> None:
    rule = PolicyRule(type="approved-addresses", enabled=True, config={"addresses": [A] * 500}, id="a")

    said = [line.text for line in rules_in_words([rule], raw=True)]

    assert '   |   "type": "approved-addresses",' in said
    assert sum("characters)" in line for line in said) == 1


@pytest.mark.parametrize(
    ("rules", "beginning"),
    [
        ([], "It has no rules: every order of this agent is signed"),
        ([PolicyRule("rate-limit", False, {})], "All of its rules are disabled: every order"),
        ([PolicyRule("rate-limit", True, {"maxTxPerDay": 1})], "No rule limits amounts or requires approval"),
        ([PolicyRule("spending-limit", True, {"maxPerDay": "1"})], "Orders that no limit or threshold covers"),
    ],
    ids=["none", "disabled", "no limit", "limit"],
)
def test_the_meaning_of_a_whole_rule_set(rules: list[PolicyRule], beginning: str) -> None:
    assert any(line.text.startswith(beginning) for line in rules_in_words(rules))


_FIELDS = st.sampled_from(
    [
        "addresses",
        "mode",
        "asset",
        "threshold",
        "maxPerTx",
        "maxPerDay",
        "alertPercents",
        "allowedHours",
        "start",
        "end",
        "allowedDays",
        "timezone",
        "notBefore",
        "notAfter",
        "maxTxPerHour",
        "chains",
        "contracts",
        "address",
        "chainId",
        "selectors",
        "constraints",
        "abi",
        "where",
        "arg",
        "op",
        "value",
        "values",
        "typedData",
        "type",
        "recipientAllowlist",
        "maxAmount",
        "siweDomains",
        "siwsDomains",
        "patterns",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8) | st.sampled_from([A, "1", "0x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS, inner, max_size=4),
    max_leaves=12,
)
_KINDS = st.sampled_from(
    [
        "spending-limit",
        "approved-addresses",
        "auto-approve-threshold",
        "time-window",
        "rate-limit",
        "allowed-chains",
        "contract-allowlist",
        "message-allowlist",
        "other",
    ]
)


@given(_KINDS, st.dictionaries(_FIELDS, _VALUES, max_size=5), st.booleans())
def test_whatever_is_stored_it_is_put_into_words(kind: str, config: dict[str, Any], raw: bool) -> None:
    rule = PolicyRule(type=kind, enabled=True, config=config)

    assert rules_in_words([rule], raw=raw)
