"""Cases on the EVM chain: rules and an order are drawn, judged, signed, executed, and held against the laws."""

from datetime import UTC, datetime
from functools import cache

from custody.chains import chains_file
from custody.chains.evm.orders import EvmOrder
from custody.kit.errors import Invalid
from custody.policies.judge import judge
from custody.policies.types import Facts, Spend, Verdict
from signer import ledger
from signer.orders.evm import EVM_TRANSACTION
from signer.orders.kind import Inputs
from tests.execution import evm_orders, laws, rule_sets
from tests.execution.cases import Case, Tally, Violation
from tests.execution.chain import CHAIN_ID, GAS, NOW, PRICE
from tests.execution.contracts import contracts_by_name
from tests.execution.draws import Draws
from tests.execution.evm_orders import Order
from tests.execution.evm_sight import FAMILY, sum_outcomes
from tests.execution.evm_world import AGENT, CONTRACTS, FUNGIBLE, KEY, PEOPLE, ROUTER, TOKEN, asset, world

MOMENT = datetime.fromtimestamp(NOW, UTC)
ASSETS = (*map(asset, (TOKEN, TOKEN, TOKEN, *FUNGIBLE)), f"evm:{CHAIN_ID}:native", "evm:native")
CHAINS = (CHAIN_ID, CHAIN_ID, CHAIN_ID, f"eip155:{CHAIN_ID}", 10)


@cache
def inputs() -> Inputs:
    """The chains that are built in."""
    return Inputs(chains_file.load({}))


@cache
def ours(address: str = AGENT) -> ledger.Facts:
    """The ledger's facts about a wallet that never signed."""
    return ledger.Facts(
        now=MOMENT,
        incarnation="",
        token_epoch=0,
        ledger_version=0,
        policy_version=0,
        frozen=False,
        address=address,
        agent_name="",
        head=(None, None, None),
        rules="",
        blob=None,
        config_version=0,
        judging=None,
        judging_mac=None,
        spend={},
        minutes=[],
        hours=[],
        highest_nonce=None,
        slot=None,
        idempotent=None,
    )


def judge_order(sent: list[rule_sets.Sent], facts: Facts, order: Order) -> tuple[Verdict, bytes] | None:
    """The verdict over an order and its signed bytes, or None if it is wrong by itself."""
    body = EvmOrder(
        order.to,
        str(order.value),
        "0x" + order.data.hex() if order.data else None,
        CHAIN_ID,
        broadcast=False,
        nonce=0,
        gas_limit=str(GAS),
        max_fee_per_gas=str(PRICE),
        max_priority_fee_per_gas="0",
    )
    try:
        draft = EVM_TRANSACTION.check(body, inputs())
        decoded = EVM_TRANSACTION.effects(draft, ours())
        final = EVM_TRANSACTION.finish(draft, decoded, ours())
    except Invalid:
        return None
    verdict = judge(rule_sets.read(sent), decoded.subject, facts)
    signed = EVM_TRANSACTION.sign(final, KEY).raw if verdict.decision == "sign" else b""
    return verdict, signed or b""


def case(number: int) -> Case:
    """One case by its number."""
    draws = Draws("evm", number)
    plain = evm_orders.draw_order(draws)
    order, mutate = plain, None
    if draws.chance(60):
        mutate = draws.one(evm_orders.MUTATIONS)
        order = mutate(draws, plain)
    for _ in range(draws.below(2) * draws.below(2)):
        order, mutate = draws.one(evm_orders.MUTATIONS)(draws, order), None
    hidden = mutate is evm_orders.gap
    sent = rule_sets.draw_rules(draws, _near(draws, plain, order))
    # What is added to a payment makes another order of it: the call that the first of it names, which may be listed.
    known = plain if hidden or (mutate in evm_orders.ADDING and plain.data) else None
    return Case(number, order, known, sent, facts_drawn(draws, ASSETS), hidden)


def facts_drawn(draws: Draws, assets: tuple[str, ...]) -> Facts:
    """Draw what was spent, and what the tenant wants done with what no rule covers."""
    spend = {name: Spend(draws.one((0, 3)), draws.one((3, 6))) for name in draws.some(assets, 2)}
    return Facts(now=MOMENT, spend=spend, uncovered=draws.one(("queue", "queue", "allow", "allow", "refuse")))


def run(case: Case, tally: Tally) -> list[Violation]:
    """Judge, sign, execute, compare; gives what law A or B says against it."""
    found = judge_order(case.rules, case.facts, case.order)
    if found is None:
        tally.count("wrong by itself")
        return []
    verdict, signed = found
    tally.count(verdict.decision)
    wrong: list[Violation] = []
    if case.plain is not None and (before := judge_order(case.rules, case.facts, case.plain)) is not None:
        tally.count("compared")
        if laws.milder(before[0], verdict, hidden=case.hidden):
            why = f"{before[0].decision} without what was added, {verdict.decision} with it"
            wrong.append(Violation("B", why, case))
    if verdict.decision != "sign":
        return wrong
    chain = world()
    with chain.case():
        outcome = chain.execute(signed)
        if outcome is None:
            tally.count("taken by no block")
            return wrong
        what = sum_outcomes([outcome])
    tally.count("executed")
    tally.count("succeeded", by=outcome.succeeded)
    tally.count("moved", by=not what.nothing)
    return wrong + [
        Violation("A", why, case) for why in laws.find_breaches(case.rules, case.facts, verdict, what, FAMILY)
    ]


def _near(draws: Draws, plain: Order, order: Order) -> rule_sets.Near:
    calls = [(one.to, "0x" + one.data[:4].hex()) for one in (plain, order) if len(one.data) >= 4]
    inner = [
        (TOKEN, "0xa9059cbb"),
        (TOKEN, "0x095ea7b3"),
        (TOKEN, "0x23b872dd"),
        (TOKEN, "0xac9650d8"),
        (ROUTER, "0x7372c2b5"),
    ]
    calls += draws.some(inner, 3)
    if order.to in CONTRACTS and draws.chance(40):
        calls += [
            (order.to, selector) for selector in draws.some(contracts_by_name()[CONTRACTS[order.to]].selectors(), 4)
        ]
    people = (*PEOPLE, *PEOPLE, *PEOPLE, order.to, AGENT, *CONTRACTS)
    # A limit that names a contract says that its numbers are amounts, which those of NFTs are not.
    assets = (*((asset(order.to),) if order.to in FUNGIBLE else ()), *ASSETS)
    return rule_sets.Near(assets, people, calls, CHAINS)
