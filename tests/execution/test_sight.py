"""The ground of the laws: the contracts are the ones that were compiled, and what the tests see is what they say."""

import pytest

from custody.policies.types import Facts
from tests.execution import evm_sight, solana_orders
from tests.execution.chain import Change
from tests.execution.contracts import call, contracts_by_name, made_from
from tests.execution.evm_cases import MOMENT, judge_order
from tests.execution.evm_orders import Order
from tests.execution.evm_world import (
    AGENT,
    ALLOWED,
    CONTRACTS,
    HELD,
    MULTI,
    NFT,
    PERMIT2,
    PLAIN,
    ROUTER,
    SAFE,
    SHOP,
    STRANGER,
    TOKEN,
    WALLET,
    WRAPPED,
    asset,
    raw,
    world,
)
from tests.execution.laws import ENDLESS, EVERYTHING, Act, Power
from tests.execution.solana_cases import judge_order as judged_on_solana
from tests.execution.solana_cases import sum_effects as seen_on_solana
from tests.execution.solana_world import FEE_MINT, cluster
from tests.execution.solana_world import STRANGER as STRANGER_KEY

FREE = Facts(now=MOMENT)


def test_the_code_was_compiled_from_what_stands_here() -> None:
    then, now = made_from()

    assert then == now, "run `npm ci --ignore-scripts && node compile.mjs` in tests/execution"


def test_every_contract_names_its_source_and_compiler() -> None:
    packages = {name: one.package for name, one in contracts_by_name().items()}

    assert packages["Safe"] == "@safe-global/safe-contracts 1.4.1 (LGPL-3.0)"
    assert packages["Token"] == "@openzeppelin/contracts 5.7.0 (MIT)"
    assert all(one.compiler.startswith("0.8.") and one.source.endswith(".sol") for one in contracts_by_name().values())


@pytest.mark.parametrize("contract", [TOKEN, PLAIN, WRAPPED])
def test_balances_are_seen_as_the_contract_says_them(contract: str) -> None:
    def says(who: str) -> int:
        return int.from_bytes(chain.do(raw(AGENT), raw(contract), call(CONTRACTS[contract], "balanceOf(address)", who)))

    chain, order = world(), _call(contract, "transfer(address,uint256)", SHOP, 7)
    with chain.case():
        before = says(AGENT), says(SHOP)
        seen = evm_sight.sum_outcomes([chain.execute(_sign(order))])
        after = says(AGENT), says(SHOP)

    assert (after[0] - before[0], after[1] - before[1]) == (-7, 7)
    assert (seen.lost[asset(contract)], seen.gained[SHOP, asset(contract)], seen.powers) == (7, 7, [])
    assert seen.fee > 0
    assert seen.lost[evm_sight.COIN] == 0


@pytest.mark.parametrize(
    ("order", "power"),
    [
        (("approve(address,uint256)", TOKEN, STRANGER, 5), Power(STRANGER, asset(TOKEN), 5)),
        (("increaseAllowance(address,uint256)", TOKEN, ROUTER, 5), Power(ROUTER, asset(TOKEN), 5)),
        (("approve(address,uint256)", NFT, STRANGER, 0), Power(STRANGER, asset(NFT), 1)),
        (("setApprovalForAll(address,bool)", NFT, STRANGER, True), Power(STRANGER, asset(NFT), ENDLESS)),
        (("setApprovalForAll(address,bool)", MULTI, STRANGER, True), Power(STRANGER, asset(MULTI), ENDLESS)),
        (
            ("approve(address,address,uint160,uint48)", PERMIT2, PLAIN, STRANGER, 5, 2**48 - 1),
            Power(STRANGER, asset(PLAIN), 5),
        ),
    ],
)
def test_power_given_away_is_seen(order: tuple[str, str], power: Power) -> None:
    signature, contract, *values = order

    assert _look_at(_call(contract, signature, *values)).powers == [power]


def test_losses_of_our_contracts_and_calls_in_our_name_are_seen() -> None:
    pay = call("Token", "transfer(address,uint256)", SHOP, 9)
    executed = _look_at(_call(WALLET, "execute(address,uint256,bytes)", TOKEN, 0, pay))
    several = _look_at(_call(TOKEN, "multicall(bytes[])", [pay]))

    assert executed.lost[asset(TOKEN)] == several.lost[asset(TOKEN)] == 9
    assert [act.selector for act in executed.acts] == ["0xb61d27f6"]
    assert several.acts == [Act(TOKEN, "0xac9650d8", 0), Act(TOKEN, "0xa9059cbb", 0)]


def test_a_new_owner_of_our_safe_may_take_everything() -> None:
    owners = call("Safe", "addOwnerWithThreshold(address,uint256)", STRANGER, 1)
    mine = raw(AGENT).rjust(32, b"\0") + bytes(32) + b"\1"
    zero = "0x" + "00" * 20
    run = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"
    seen = _look_at(_call(SAFE, run, SAFE, 0, owners, 0, 0, 0, 0, zero, zero, mine))

    assert {one.asset for one in seen.powers} == {EVERYTHING}


def test_changes_that_nobody_can_explain_stop_the_tests() -> None:
    outcome = world()
    with outcome.case():
        made = outcome.execute(_sign(_call(TOKEN, "transfer(address,uint256)", SHOP, 7)))
    strange = Change(raw(TOKEN), 99, (), 0, 1)

    with pytest.raises(evm_sight.Unexplained):
        evm_sight.sum_outcomes([type(made)(True, 0, {}, (strange,), ())])


def test_a_case_leaves_nothing_behind() -> None:
    chain = world()
    with chain.case():
        chain.execute(_sign(_call(TOKEN, "transfer(address,uint256)", SHOP, 7)))

    assert chain.nonce(raw(AGENT)) == 0
    assert _look_at(_call(TOKEN, "transfer(address,uint256)", SHOP, HELD - ALLOWED // 2)).lost[asset(TOKEN)] == 970


def test_programs_on_solana_are_real_and_put_back() -> None:
    order = solana_orders.Order((solana_orders.pay(FEE_MINT, STRANGER_KEY, 100),), str(STRANGER_KEY), 0)
    for _ in range(2):
        found = judged_on_solana([], FREE, order)
        assert found is not None
        seen = seen_on_solana(cluster().execute(found[1]))
        # The mint withholds 3 of 100 in the receiver's account; what arrived is another matter than what left.
        assert seen.lost[f"solana:{FEE_MINT}"] == 100
        assert seen.gained[str(STRANGER_KEY), f"solana:{FEE_MINT}"] == 97
        assert (seen.fee, seen.lost["solana:native"]) == (5_000, 0)


def _call(contract: str, signature: str, *values: object) -> Order:
    return Order(contract, 0, call(CONTRACTS[contract], signature, *values))


def _sign(order: Order) -> bytes:
    found = judge_order([], FREE, order)
    assert found is not None
    assert found[0].decision == "sign"
    return found[1]


def _look_at(order: Order) -> evm_sight.Seen:
    chain = world()
    with chain.case():
        outcome = chain.execute(_sign(order))
        assert outcome is not None
        assert outcome.succeeded
        return evm_sight.sum_outcomes([outcome])
