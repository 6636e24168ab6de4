"""Words about what a changed set of rules loosens: never less than the signer would say."""

from itertools import product
from typing import Any

import msgspec

from console.rules.looser import is_voted_on, looser
from console.rules.rule_terms import Names
from custody.kit import ids
from custody.policies.kinds import PolicyRule as Rule
from custody.policies.rules import parse
from custody.policies.tighten import widening
from tests.fixtures.each import each
from words.shapes import PolicyRule

A, B = "0x" + "11" * 20, "0x" + "22" * 20
USDC = f"evm:1:{B}"
KEY, OTHER_KEY = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="
KEYS = [{"userId": "11111111-1111-4111-8111-111111111111", "keys": ["ab" * 32]}]
SET = "22222222-2222-4222-8222-222222222222"


def rule(kind: str, *, enabled: bool = True, name: str | None = None, **config: Any) -> dict[str, Any]:
    """One rule as a file has it."""
    return {"type": kind, "enabled": enabled, "config": config, "id": name or kind}


def differences(now: list[dict[str, Any]], then: list[dict[str, Any]], names: Names | None = None) -> list[str]:
    """Sentences about a change."""
    return looser(msgspec.convert(now, list[PolicyRule]), msgspec.convert(then, list[PolicyRule]), names)


LIMIT = rule("spending-limit", maxPerDay="100", asset=USDC)
ENTRY = {"chainId": 1, "address": A, "selectors": ["0xa9059cbb"]}


@each(
    ("now", "then", "expected"),
    [
        (LIMIT, rule("spending-limit", maxPerDay="101", asset=USDC), "in any 24 hours, was"),
        (LIMIT, rule("spending-limit", maxPerWeek="100", asset=USDC), "any amount in any 24 hours"),
        (LIMIT, rule("spending-limit", maxPerDay="100"), "counts another asset"),
        (LIMIT, rule("spending-limit", maxPerDay="100", asset=USDC, enabled=False), "disabled"),
        (LIMIT, rule("rate-limit", maxTxPerHour=1), "Spending limit: removed."),
        (rule("rate-limit", maxTxPerHour=1), rule("rate-limit", maxTxPerHour=2), "2 orders in any hour, was 1"),
        (rule("allowed-chains", chains=[1]), rule("allowed-chains", chains=[1, 8453]), "also on Base (8453)"),
        (
            rule("approved-addresses", addresses=[A]),
            rule("approved-addresses", addresses=[A, B]),
            f"Approved addresses: approves {B}  (us).",
        ),
        (
            rule("approved-addresses", addresses=[A, B], mode="blacklist"),
            rule("approved-addresses", addresses=[A], mode="blacklist"),
            f"blocks no longer {B}",
        ),
        (
            rule("time-window", allowedDays=[1, 2]),
            rule("time-window", allowedDays=[1, 2, 3], timezone="Europe/Zurich"),
            "on the clocks of another zone",
        ),
        (
            rule("time-window", allowedHours=[{"start": 22, "end": 6}]),
            rule("time-window", allowedHours=[{"start": 21, "end": 6}]),
            "more hours",
        ),
        (
            rule("time-window", notAfter="2026-01-01T00:00:00Z"),
            rule("time-window", allowedDays=[1]),
            "ends later: never, was 2026-01-01 00:00:00 UTC",
        ),
        (
            rule("time-window", notBefore="2026-01-02T00:00:00Z"),
            rule("time-window", notBefore="2026-01-01T00:00:00Z"),
            "begins earlier: 2026-01-01 00:00:00 UTC, was 2026-01-02 00:00:00 UTC",
        ),
        (
            rule("rate-limit", maxTxPerHour=1, until="2026-01-01T00:00:00Z"),
            rule("rate-limit", maxTxPerHour=1, until="2026-01-02T00:00:00Z"),
            "ends later: 2026-01-02 00:00:00 UTC",
        ),
        (rule("contract-allowlist", contracts=[ENTRY]), rule("contract-allowlist", contracts=[]), "not compared here"),
    ],
)
def test_a_change_says_what_it_loosens(now: Any, then: Any, expected: str) -> None:
    assert expected in " ".join(differences([now], [then], Names(addresses={B: "us"})))
    assert differences([now], [now]) == []


# Rules that differ from one another in one thing or two.
VARIANTS: list[dict[str, Any]] = [
    rule("spending-limit", maxPerDay="100"),
    rule("spending-limit", maxPerDay="99"),
    rule("spending-limit", maxPerDay="100", maxPerTransaction="5"),
    rule("spending-limit", maxPerDay="100", maxPerTx="6"),
    rule("spending-limit", maxPerDay="100", asset="evm:native"),
    rule("spending-limit", maxPerDay="100", asset="usd"),
    rule("spending-limit", maxPerDay="100", maxRentPerDay="7"),
    rule("spending-limit", maxPerDay="100", alertPercents=[50]),
    rule("spending-limit", maxPerDay="100", enabled=False),
    LIMIT,
    rule("auto-approve-threshold", threshold="10"),
    rule("auto-approve-threshold", threshold="11"),
    rule("auto-approve-threshold", threshold="10", enabled=False),
    rule("auto-approve-threshold", threshold="10", asset=USDC),
    rule("rate-limit", maxTxPerHour=3),
    rule("rate-limit", maxTxPerHour=3, maxTxPerDay=9),
    rule("rate-limit", maxTxPerDay=9, until="2026-01-01T00:00:00Z"),
    rule("rate-limit", maxTxPerDay=9, until="2026-01-02T00:00:00+02:00"),
    rule("approved-addresses", addresses=[A]),
    rule("approved-addresses", addresses=[A, B]),
    rule("approved-addresses", addresses=[A], mode="blacklist"),
    rule("approved-addresses", addresses=[A, B], mode="blacklist"),
    rule("allowed-chains", chains=[1, "eip155:8453"]),
    rule("allowed-chains", chains=[1]),
    rule("allowed-chains", chains=["eip155:1"]),
    rule("time-window", allowedDays=[1, 2]),
    rule("time-window", allowedDays=[1], allowedHours=[{"start": 22, "end": 6}]),
    rule("time-window", allowedHours=[{"start": 23, "end": 24}]),
    rule("time-window", allowedDays=[1], timezone="Europe/Zurich"),
    rule("time-window", allowedDays=[1], notBefore="2026-01-01T00:00:00Z"),
    rule("time-window", notBefore="2026-01-02T00:00:00Z", notAfter="2026-02-01T00:00:00Z"),
    rule("time-window", notAfter="2026-01-31T23:00:00Z"),
    rule("contract-allowlist", contracts=[ENTRY]),
    rule("contract-allowlist", contracts=[ENTRY, {**ENTRY, "address": B}]),
    rule("message-allowlist", siweDomains=["a.example"]),
    rule("message-allowlist", siweDomains=["a.example", "b.example"]),
    rule("policy-set", policySet=SET),
    rule("new-recipient"),
    rule("new-recipient", known=[A]),
    rule("new-recipient", known=[A, B]),
    rule("delay", minutes=10),
    rule("delay", minutes=20),
    rule("circuit-breaker", minutes=10, refused=5),
    rule("circuit-breaker", minutes=10, refused=6, failed=1),
    rule("circuit-breaker", minutes=20, failed=1),
    rule("external-check", url="https://a.example/", publicKeys=[KEY]),
    rule("external-check", url="https://a.example/", publicKeys=[KEY], onFailure="refuse", timeoutSeconds=8),
    rule("external-check", url="https://a.example/", publicKeys=[KEY, OTHER_KEY]),
    rule("external-check", url="https://b.example/", publicKeys=[KEY]),
    rule("delay", minutes=10, above="5"),
    rule("delay", minutes=10, above="6"),
    rule("delay", minutes=10, above="5", asset=USDC),
    rule("approval-quorum", threshold=1, approvers=KEYS, above="5"),
    rule("approval-quorum", threshold=1, approvers=KEYS, above="6"),
]


def test_nothing_that_the_signer_calls_looser_is_left_unnamed() -> None:
    """Over every change of one rule, alone and beside a limit, a threshold or a rule that asks for votes."""
    beside: list[list[dict[str, Any]]] = [
        [],
        [rule("spending-limit", maxPerDay="7", asset="solana:native", name="beside")],
        [rule("auto-approve-threshold", threshold="3", name="beside")],
        [rule("approval-quorum", threshold=1, approvers=KEYS, above="5", name="beside")],
        [rule("approved-addresses", addresses=[A, B], name="beside")],
        [rule("contract-allowlist", contracts=[ENTRY], name="beside")],
    ]
    unnamed, tightening = [], 0
    for others, now, then in product(beside, [None, *VARIANTS], [None, *VARIANTS]):
        sets = [[*others, *([one] if one else [])] for one in (now, then)]
        old, new = (parse(msgspec.convert(each_of, list[Rule]), ids.new_uuid) for each_of in sets)
        judged, found = widening(old, new, empty_policy="allow"), differences(*sets)
        tightening += not found and bool(sets[0])
        if judged is None or found:
            continue
        # Where nothing was covered nobody was asked for what was not: the signer is more careful there.
        known = msgspec.convert(sets[0], list[PolicyRule])
        covers = is_voted_on(known) or any(
            one.enabled and one.type in ("spending-limit", "auto-approve-threshold") for one in known
        )
        # Lists of addresses and calls ask too, for what is not read, but for no asset.
        lists = any(one.enabled and one.type in ("approved-addresses", "contract-allowlist") for one in known)
        if covers or judged.startswith("Rule ") or (lists and not judged.startswith("A first limit ")):
            unnamed.append((sets, judged))

    assert unnamed == []
    # A control: not everything is called looser.
    assert tightening > len(VARIANTS)
