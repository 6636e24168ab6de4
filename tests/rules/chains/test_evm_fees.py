"""Fees of EVM orders: a caller's own are signed as they are or refused; those chosen here are ones that nodes take."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.chains_file import load
from custody.chains.evm.family import Evm
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.chains.evm.transaction import BadTransaction
from custody.chains.table import ChainTable
from custody.protocol.signer.order_refusals import FeeAboveCap, FeeTooLow, GasLimitTooLow
from signer.ledger import Facts
from signer.orders.evm import EVM_TRANSACTION, Fees
from signer.orders.kind import Inputs
from tests.fixtures.callers import ADDRESS

GWEI = 10**9
POLYGON, BSC, MAINNET = 137, 56, 1
CHAINS = load({})
FIELDS = {"max_fee": "max_fee_per_gas", "tip": "max_priority_fee_per_gas"}


def order(chain: int, *, broadcast: bool = False, **own: int) -> EvmOrder:
    given = {FIELDS.get(name, name): str(value) for name, value in own.items()}
    return EvmOrder(to=ADDRESS, value="1", chain_id=chain, broadcast=broadcast, **given)  # type: ignore[arg-type]


def node(max_fee: int, tip: int = 0, **more: Any) -> EvmPrepared:
    return EvmPrepared(pending_nonce=0, gas_limit=21_000, max_fee=max_fee, priority_fee=tip, **more)


def fees(asked: EvmOrder, prepared: EvmPrepared | None = None, chains: ChainTable = CHAINS) -> Fees:
    """Choose the fees that the signer would sign with."""
    facts = msgspec.convert({"address": ADDRESS} | FACTS, Facts)
    return EVM_TRANSACTION.effects(EVM_TRANSACTION.check(asked, Inputs(chains, prepared)), facts).fees


FACTS: dict[str, Any] = {
    "now": "2026-01-01T00:00:00Z", "incarnation": "", "token_epoch": 0, "ledger_version": 0, "policy_version": 0,
    "frozen": False, "agent_name": "", "head": (None, None, None), "rules": "[]", "blob": None, "config_version": 0,
    "judging": None, "judging_mac": None, "spend": {}, "minutes": [], "hours": [], "highest_nonce": None, "slot": None,
    "idempotent": None,
}  # fmt: skip


def with_figures(chain: int, **fields: int) -> ChainTable:
    """The table with other figures of one chain, as the operator's file gives them."""
    rows = {one.id: one for one in CHAINS.all}
    return ChainTable(rows | {chain: msgspec.structs.replace(rows[chain], **fields)}, 1)


@pytest.mark.parametrize(
    ("chain", "prepared", "expected"),
    [
        (POLYGON, None, (74 * GWEI, 25 * GWEI)),
        # What nodes have suggested although their pools refuse it.
        (POLYGON, node(2 * 30 * GWEI + GWEI, GWEI), (85 * GWEI, 25 * GWEI)),
        (POLYGON, node(2 * 30 * GWEI + 40 * GWEI, 40 * GWEI), (100 * GWEI, 40 * GWEI)),
        (POLYGON, node(GWEI, legacy=True), (25 * GWEI, 25 * GWEI)),
        (BSC, node(0, 0), (GWEI // 20, GWEI // 20)),
        (BSC, node(GWEI, GWEI), (GWEI, GWEI)),
        (MAINNET, None, (50 * GWEI, GWEI)),
        (MAINNET, node(3, 1), (3, 1)),
    ],
)
def test_chosen_fees_are_not_below_the_floor_of_the_chain(
    chain: int, prepared: EvmPrepared | None, expected: tuple[int, int]
) -> None:
    found = fees(order(chain), prepared)

    assert (found.max_fee, found.priority_fee) == expected


def test_the_operator_sets_another_floor() -> None:
    assert fees(order(MAINNET), None, with_figures(MAINNET, min_priority_fee_per_gas=7 * GWEI)).priority_fee == 7 * GWEI
    assert fees(order(POLYGON), None, with_figures(POLYGON, min_priority_fee_per_gas=0)).priority_fee == GWEI


@pytest.mark.parametrize("own", [{"max_fee": 25 * GWEI - 1}, {"tip": 25 * GWEI - 1}, {"max_fee": 0}], ids=str)
def test_a_callers_fee_below_the_floor_is_refused_where_it_would_be_broadcast(own: dict[str, int]) -> None:
    with pytest.raises(FeeTooLow, match=f"is below {25 * GWEI}, the least that nodes of Polygon take"):
        fees(order(POLYGON, broadcast=True, **own), node(100 * GWEI, 30 * GWEI))

    assert fees(order(POLYGON, **own), node(100 * GWEI, 30 * GWEI))


def test_a_floor_that_the_cap_of_a_transaction_excludes_is_said() -> None:
    capped = with_figures(POLYGON, max_fee_per_transaction=21_000 * 25 * GWEI - 1)

    with pytest.raises(FeeAboveCap):
        fees(order(POLYGON), node(100 * GWEI, 30 * GWEI), capped)


@pytest.mark.parametrize(
    ("chain", "max_fee", "tip"), [(MAINNET, 1, 2), (MAINNET, 0, 1), (POLYGON, 30 * GWEI, 31 * GWEI)]
)
def test_a_tip_above_the_fee_is_refused(chain: int, max_fee: int, tip: int) -> None:
    with pytest.raises(BadTransaction, match=f"maxPriorityFeePerGas {tip} is above maxFeePerGas {max_fee}"):
        fees(order(chain, max_fee=max_fee, tip=tip))

    assert fees(order(chain, max_fee=tip, tip=tip)) == Fees(100_000, tip, tip)
    assert fees(order(chain, max_fee=max_fee, tip=max_fee)) == Fees(100_000, max_fee, max_fee)


def test_a_tip_alone_is_paid_in_full_above_the_base_fee_of_the_node() -> None:
    assert fees(order(MAINNET, tip=9 * GWEI), node(5 * GWEI, GWEI)) == Fees(21_000, 13 * GWEI, 9 * GWEI)


def test_a_tip_below_the_floor_for_a_node_of_the_callers_own_makes_no_fee_below_it() -> None:
    assert fees(order(BSC, tip=0), node(0, 0)) == Fees(21_000, GWEI // 20, 0)


def test_a_tip_alone_that_no_fee_within_the_caps_can_hold_is_refused() -> None:
    low = with_figures(MAINNET, max_fee_per_gas=8 * GWEI)
    tight = with_figures(MAINNET, max_fee_per_transaction=21_000 * 9 * GWEI - 1)

    for chains in (low, tight):
        with pytest.raises(FeeAboveCap):
            fees(order(MAINNET, tip=9 * GWEI), node(5 * GWEI, GWEI), chains)


@pytest.mark.parametrize("prepared", [node(-1), node(-1, 1), node(5, -1), node(-1, legacy=True)], ids=str)
@pytest.mark.parametrize("chain", [MAINNET, POLYGON])
def test_a_fee_below_nothing_is_never_made_one(chain: int, prepared: EvmPrepared) -> None:
    with pytest.raises(BadTransaction):
        fees(order(chain), prepared)


@pytest.mark.parametrize("own", [{"tip": 5}, {"max_fee": 9, "tip": 5}], ids=str)
def test_a_tip_that_a_legacy_transaction_cannot_have_is_refused(own: dict[str, int]) -> None:
    with pytest.raises(BadTransaction, match="no EIP-1559 blocks"):
        fees(order(MAINNET, **own), node(7, legacy=True))

    assert fees(order(MAINNET, max_fee=9, tip=9), node(7, legacy=True)).max_fee == 9


small = st.integers(0, 600 * GWEI)


@given(
    chain=st.sampled_from([one.id for one in Evm.chains]),
    broadcast=st.booleans(),
    own=st.fixed_dictionaries({}, optional={"max_fee": small, "tip": small, "gas_limit": st.integers(0, 10**9)}),
    prepared=st.none() | st.builds(node, st.integers(0, 10**13), st.integers(0, 10**13), legacy=st.booleans()),
)
def test_a_callers_figures_are_signed_as_they_are_or_refused(
    chain: int, broadcast: bool, own: dict[str, int], prepared: EvmPrepared | None
) -> None:
    row = CHAINS.find(chain)
    assert row is not None
    try:
        found = fees(order(chain, broadcast=broadcast, **own), prepared)
    except (BadTransaction, FeeAboveCap, FeeTooLow, GasLimitTooLow) as refused:
        assert own, refused  # noqa: PT017 - without a figure of the caller's nothing may be refused
        return

    legacy = prepared is not None and prepared.legacy
    assert found.max_fee == own.get("max_fee", found.max_fee)
    assert found.gas_limit == own.get("gas_limit", found.gas_limit)
    if not legacy:
        assert found.priority_fee == own.get("tip", found.priority_fee)
    assert found.priority_fee <= found.max_fee <= row.max_fee_per_gas
    assert found.gas_limit * found.max_fee <= row.max_fee_per_transaction
    if broadcast or "max_fee" not in own:
        assert found.max_fee >= row.min_priority_fee_per_gas
