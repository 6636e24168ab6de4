"""Changes that an agent's own token may make: only towards stricter."""

import pytest

from custody.policies.tighten import widening
from tests.rules.policies.makers import ALICE, APPROVE, BOB, TOKEN, TOKEN_CONTRACT, TRANSFER, rule, rules

LIMIT = rule("spending-limit", {"maxPerDay": "100"}, id="limit")
RATE = rule("rate-limit", {"maxTxPerDay": 5}, id="rate")
OFF = rule("time-window", {"allowedDays": [1]}, id="off", enabled=False)

SOON, LATER = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def list_rule(*addresses, mode="whitelist"):
    return rule("approved-addresses", {"addresses": list(addresses), "mode": mode})


def limit(**config):
    return rule("spending-limit", config)


def window(**config):
    return rule("time-window", config)


def chains(*names):
    return rule("allowed-chains", {"chains": list(names)})


def allow(*selectors, chain=None, **constraint):
    entry = {
        "address": TOKEN_CONTRACT,
        "selectors": list(selectors),
        "constraints": dict.fromkeys(selectors, constraint),
    }
    return rule(
        "contract-allowlist", {"contracts": [entry | ({"chainId": chain} if chain else {})] if selectors else []}
    )


def verdict(old, new):
    return widening(rules(*old), rules(*new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (limit(maxPerDay="100"), limit(maxPerDay="99")),
        (limit(maxPerDay="100"), limit(maxPerDay="100", maxPerTx="5")),
        (rule("auto-approve-threshold", {"threshold": "9"}), rule("auto-approve-threshold", {"threshold": "0"})),
        (list_rule(ALICE, BOB), list_rule(ALICE)),
        (list_rule(ALICE, mode="blacklist"), list_rule(ALICE, BOB, mode="blacklist")),
        (window(allowedDays=[1, 2]), window(allowedDays=[1], allowedHours=[{"start": 9, "end": 17}])),
        (window(notAfter=LATER), window(notAfter=SOON, allowedDays=[1], timezone="Europe/Berlin")),
        (window(notBefore=SOON), window(notBefore=LATER, notAfter="2027-01-01T00:00:00Z")),
        (window(allowedDays=[1]), window(allowedDays=[1], notBefore=SOON)),
        (rule("rate-limit", {"maxTxPerDay": 5}), rule("rate-limit", {"maxTxPerDay": 4, "maxTxPerHour": 2})),
        (chains(1, 10), chains("eip155:1")),
        (allow(TRANSFER, maxAmount="9"), allow(TRANSFER, maxAmount="8", recipientAllowlist=[ALICE])),
        (allow(TRANSFER, maxAmount="9"), allow(TRANSFER, maxAmount="9", chain=1)),
        (allow(TRANSFER), allow()),
        (allow(TRANSFER, APPROVE), allow(TRANSFER)),
    ],
)
def test_a_stricter_rule_of_the_same_type_tightens_and_the_way_back_loosens(old, new):
    assert verdict([old], [new]) is None
    assert verdict([new], [old])


def test_an_alias_is_the_same_limit():
    assert verdict([limit(maxPerTx="100")], [limit(maxPerTransaction="100")]) is None


@pytest.mark.parametrize(
    "new",
    [
        [],
        [rule("spending-limit", {"maxPerDay": "100"}, enabled=False, id="limit")],
        [limit(maxPerDay="101")],
        [limit(maxPerWeek="1")],
        [limit(maxPerDay="1", asset="evm:native")],
        [limit(maxPerDay="1", alertPercents=[])],
        [LIMIT, limit(maxPerDay="1", asset=TOKEN)],
        [LIMIT, rule("auto-approve-threshold", {"threshold": "1", "asset": TOKEN})],
        [LIMIT, allow(TRANSFER)],
    ],
)
def test_a_change_that_is_not_provably_stricter_counts_as_loosening(new):
    assert verdict([LIMIT], new)


@pytest.mark.parametrize(
    "added", [RATE, list_rule(ALICE), window(allowedDays=[1]), chains(1), allow(), limit(maxPerTx="1")]
)
def test_a_rule_that_covers_nothing_new_may_be_added(added):
    assert verdict([LIMIT], [added, LIMIT]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (list_rule(ALICE), list_rule(ALICE, BOB)),
        (list_rule(ALICE, BOB, mode="blacklist"), list_rule(ALICE, mode="blacklist")),
        (list_rule(ALICE, mode="blacklist"), list_rule(BOB)),
        (window(allowedDays=[1]), window(allowedDays=[1, 2])),
        (window(allowedDays=[1]), window(allowedDays=[1], timezone="Europe/Berlin")),
        (window(notAfter=SOON), window(notAfter=LATER)),
        (window(notAfter=SOON), window(notAfter="2026-01-01T00:00:00.000001Z")),
        (window(notAfter=SOON, allowedDays=[1]), window(allowedDays=[1])),
        (window(notBefore=LATER), window(notBefore=SOON)),
        (window(notBefore=LATER, allowedDays=[1]), window(allowedDays=[1])),
        (window(notBefore=LATER), window(notAfter=LATER)),
        (window(allowedHours=[{"start": 0, "end": 23}]), window(notAfter=SOON, timezone="Europe/Berlin")),
        (chains("eip155:1"), chains(1)),
        (allow(TRANSFER), allow(TRANSFER, maxAmount="9")),
        (allow(TRANSFER, recipientBlocklist=[]), allow(TRANSFER)),
        (allow(TRANSFER, recipientBlocklist=[ALICE, BOB]), allow(TRANSFER, recipientBlocklist=[ALICE])),
        (allow(APPROVE, spenderBlocklist=[BOB]), allow(APPROVE, spenderBlocklist=[ALICE])),
        (allow(TRANSFER, APPROVE, spenderAllowlist=[BOB]), allow(TRANSFER, spenderAllowlist=[BOB])),
        (allow(TRANSFER, APPROVE, maxNativeValueWei="9"), allow(TRANSFER, APPROVE, maxNativeValueWei="10")),
        (allow(TRANSFER, maxNativeValueWei="9"), allow()),
        (allow(TRANSFER, chain=1), allow(TRANSFER, chain=10)),
    ],
)
def test_a_rule_that_permits_more_loosens(old, new):
    assert verdict([old], [new])


def test_ids_do_not_matter_for_enabled_rules():
    assert verdict([LIMIT, RATE], [rule("rate-limit", {"maxTxPerDay": 5}, id="limit"), limit(maxPerDay="9")]) is None


def test_a_disabled_rule_must_stay_because_a_signer_may_be_bound_to_it():
    assert verdict([LIMIT, OFF], [LIMIT])
    assert verdict([LIMIT, OFF], [LIMIT, OFF]) is None


@pytest.mark.parametrize(
    ("config", "id", "kept"),
    [
        ({"maxPerDay": "5"}, "off", True),
        ({"maxPerDay": "4"}, "off", True),
        # The signer names the rule by its id, so another that is as strict is not the same.
        ({"maxPerDay": "4"}, "another", False),
        ({"maxPerDay": "6"}, "off", False),
        ({"maxPerWeek": "5"}, "off", False),
    ],
)
def test_a_disabled_rule_stays_under_its_id_and_as_strict(config, id, kept):
    off = rule("spending-limit", {"maxPerDay": "5"}, enabled=False, id="off")
    new = rule("spending-limit", config, enabled=False, id=id)

    assert (verdict([LIMIT, off], [LIMIT, new]) is None) is kept


def test_a_second_list_is_compared_though_the_first_permits_nothing_new():
    first, second = (rules(allow(selector))[0] for selector in (TRANSFER, APPROVE))

    assert widening((first,), (first, first), empty_policy="allow") is None
    assert "contract-allowlist entry" in (widening((first,), (first, second), empty_policy="allow") or "")


def test_a_first_hard_rule_loosens_only_where_one_is_demanded():
    assert widening((), rules(RATE), empty_policy="deny")
    assert widening((), rules(RATE), empty_policy="allow") is None


def test_the_sentence_names_what_loosened():
    assert verdict([LIMIT], []) == "Rule limit (spending-limit) would be removed, disabled or made less strict."
    assert verdict([LIMIT], [LIMIT, limit(maxPerDay="1", asset=TOKEN)]) == (
        f"A first limit or threshold for {TOKEN} would cover orders that no rule covered before."
    )
