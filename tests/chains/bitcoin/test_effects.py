"""Effects of a PSBT that the policies see: each payment, the whole fee, whose coins they are, and the network."""

import msgspec
import pytest

from custody.chains.bitcoin.effects import subject_of
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.types import Payment, Spend
from custody.chains.types import Effect
from custody.policies.judge import judge
from tests.chains.bitcoin.wallet import payment, prove_psbt
from tests.rules.policies.makers import facts, rule, rules

FOUND: Spend = prove_psbt(payment("p2wpkh"))
THEM = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
TO_DATA = Payment(1, 0, b"\x6a\x04data", None)
TO_KEY = Payment(2, 7, b"\x21" + b"\x02" * 33 + b"\xac", None)


def spend(*payments: Payment, fee: int = 3, foreign: tuple[int, ...] = ()) -> Spend:
    return msgspec.structs.replace(FOUND, payments=payments, fee=fee, foreign=foreign)


def paying(amount: int, to: str = THEM) -> Payment:
    return Payment(0, amount, b"\x00\x14" + b"\x11" * 20, to)


def test_each_payment_and_the_whole_fee_are_effects_of_our_coins() -> None:
    subject = subject_of(spend(paying(5), TO_DATA, TO_KEY), "ours")

    assert subject.effects[:2] == (
        Effect("transfer", "bitcoin", 5, "ours", THEM),
        Effect("transfer", "bitcoin", 0, "ours", None, label="data"),
    )
    assert subject.effects[2:] == (
        Effect("transfer", "bitcoin", 7, "ours", None, label="p2pk"),
        Effect("fee", "bitcoin", 3, "ours"),
    )


@pytest.mark.parametrize("foreign", [(0,), (1, 2)])
def test_coins_of_others_are_an_effect_that_nobody_can_read(foreign: tuple[int, ...]) -> None:
    alone, shared = (subject_of(spend(paying(5), foreign=others), "ours") for others in ((), foreign))

    assert shared.effects[:-1] == alone.effects
    assert shared.effects[-1] == Effect(
        "unread", None, 0, "ours", label="others pay in this transaction", size=shared.effects[-1].size
    )


@pytest.mark.parametrize(
    ("payments", "destination"),
    [
        ((paying(5), paying(6, "second")), THEM),
        ((TO_DATA, paying(6, "second")), "second"),
        ((TO_DATA,), "ours"),
        ((), "ours"),
    ],
)
def test_an_order_goes_where_its_first_payment_with_an_address_does(payments, destination) -> None:
    assert subject_of(spend(*payments), "ours").destination == destination


def test_an_order_is_of_bitcoin_on_its_network_and_needs_a_rule_that_lists_it() -> None:
    subject = subject_of(spend(paying(5)), "ours")

    assert (subject.family, subject.kind, subject.chain_id) == ("bitcoin", "bitcoin", None)
    assert subject.caip2 == parse_scope("bitcoin:regtest:p2wpkh:0:0:0").network.caip2
    assert (subject.listed, subject.calls, subject.message) == (True, (), None)
    assert judge(rules(rule("rate-limit", {"maxTxPerDay": 5})), subject, facts()).decision == "refuse"
    assert judge(rules(rule("allowed-chains", {"chains": ["bitcoin:regtest"]})), subject, facts()).decision == "sign"
    assert judge(rules(rule("allowed-chains", {"chains": ["bitcoin:mainnet"]})), subject, facts()).decision == "refuse"


@pytest.mark.parametrize(("most", "decision"), [("18", "sign"), ("17", "refuse")])
def test_all_payments_and_the_fee_count_towards_a_limit(most: str, decision: str) -> None:
    set_ = rules(
        rule("allowed-chains", {"chains": ["bitcoin:regtest"]}),
        rule("spending-limit", {"maxPerDay": most, "asset": "bitcoin"}),
    )

    verdict = judge(set_, subject_of(spend(paying(5), paying(10, "second")), "ours"), facts())

    assert (verdict.decision, verdict.charges) == (decision, {"bitcoin": 18})
