"""A rule is no stricter if one of its fields is, and another one looser: every pair of fields of every type."""

import itertools

import pytest

from custody.policies.kinds import KINDS
from custody.policies.tighten import widening
from tests.rules.policies.makers import ALICE, BOB, TOKEN_CONTRACT, TRANSFER, rule, rules

# Of each type its fields that bound something, each with a looser and a stricter value; and what else it must have.
FIELDS = {
    "spending-limit": (
        {"asset": "solana:native", "maxPerTransaction": "9"},
        {
            "maxPerTransaction": ("9", "8"),
            "maxPerDay": ("99", "98"),
            "maxPerWeek": ("999", "998"),
            "maxRentPerDay": ("9", "8"),
            "alertPercents": ([50], [50, 80]),
        },
    ),
    "rate-limit": ({}, {"maxTxPerHour": (5, 4), "maxTxPerDay": (50, 40)}),
    "time-window": (
        {"timezone": "UTC"},
        {
            "allowedDays": ([1, 2], [1]),
            "allowedHours": ([{"start": 9, "end": 17}], [{"start": 9, "end": 16}]),
            "notBefore": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
            "notAfter": ("2026-02-01T00:00:01Z", "2026-02-01T00:00:00Z"),
        },
    ),
    "contract-allowlist": (
        {},
        {
            "maxAmount": ("9", "8"),
            "maxNativeValueWei": ("7", "6"),
            "recipientAllowlist": ([ALICE, BOB], [ALICE]),
            "recipientBlocklist": ([ALICE], [ALICE, BOB]),
        },
    ),
}
# The other types have one field that bounds, or their comparison is tried as a whole.
ALONE = {
    "auto-approve-threshold",
    "approved-addresses",
    "allowed-chains",
    "approval-quorum",
    "message-allowlist",
    "policy-set",
    "new-recipient",
    "delay",
    "circuit-breaker",
    "external-check",
}


def make(kind, fields):
    if kind != "contract-allowlist":
        return rules(rule(kind, FIELDS[kind][0] | fields))
    entry = {"address": TOKEN_CONTRACT, "selectors": [TRANSFER], "constraints": {TRANSFER: fields}}
    return rules(rule(kind, {"contracts": [entry]}))


def test_every_type_is_here() -> None:
    assert set(FIELDS) | ALONE == set(KINDS)


PAIRS = [(kind, *pair) for kind, (_, fields) in FIELDS.items() for pair in itertools.permutations(fields, 2)]


@pytest.mark.parametrize(("kind", "tighter", "looser"), PAIRS)
def test_one_field_tighter_and_another_looser_is_looser(kind: str, tighter: str, looser: str) -> None:
    values = FIELDS[kind][1]
    old = {tighter: values[tighter][0], looser: values[looser][1]}

    assert widening(make(kind, old), make(kind, old)) is None
    assert widening(make(kind, old), make(kind, old | {tighter: values[tighter][1]})) is None
    assert widening(make(kind, old), make(kind, old | {looser: values[looser][0]}))
    assert widening(make(kind, old), make(kind, {tighter: values[tighter][1], looser: values[looser][0]}))


# A list that is bounded by an amount covers more than one that is not, so the way back loosens too.
GONE = [(kind, kept, gone) for kind, kept, gone in PAIRS if gone not in FIELDS[kind][0] and gone != "alertPercents"]
BACK = [(kind, kept, gone) for kind, kept, gone in GONE if gone not in ("maxAmount", "maxRentPerDay")]


@pytest.mark.parametrize(("kind", "kept", "gone"), GONE)
def test_a_field_that_is_gone_is_looser_whatever_the_other_does(kind: str, kept: str, gone: str) -> None:
    values = FIELDS[kind][1]
    old = {kept: values[kept][0], gone: values[gone][0]}

    assert widening(make(kind, old), make(kind, {kept: values[kept][1]}))


@pytest.mark.parametrize(("kind", "kept", "gone"), BACK)
def test_a_field_more_is_stricter(kind: str, kept: str, gone: str) -> None:
    values = FIELDS[kind][1]

    one = {kept: values[kept][0]}

    assert widening(make(kind, one), make(kind, one | {gone: values[gone][0]})) is None
