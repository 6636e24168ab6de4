"""Every field of what a document lets others do: whose it is, whom it goes to, and how it is told."""

from typing import Any

import pytest
from eth_abi import encode

from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.evm.typed_kinds import OTHERS, READERS, REFUND, WITNESS, WITNESSES
from custody.chains.types import UNLIMITED, Effect
from custody.kit.shapes import MAX_UINT256
from tests.rules.chains.typed_samples import (
    COW,
    DOMAIN,
    OTHER,
    PERMIT2_DOMAIN,
    POLYMARKET,
    SEAPORT,
    SPENDER,
    TOKEN,
    US,
    ZERO,
    ZERO_EX,
    kind,
    plain,
    read_effects,
    sample,
    structs_of,
    with_witness,
)

PAID = "0x" + "9" * 40
TRANSFER = "0xa9059cbb" + encode(["address", "uint256"], [OTHER, 5]).hex()
ITEM = {"itemType": 1, "token": TOKEN, "identifierOrCriteria": 7, "startAmount": "5", "endAmount": "9"}
COMPONENTS, SAFE = kind("OrderComponents"), kind("SafeTx")
FORWARD = kind("ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,bytes")


def at(domain: dict[str, Any]) -> str:
    return str(domain["verifyingContract"]).lower()


def unread(label: str, to: str, from_: str = US, *, unknown: bool = False) -> Effect:
    return Effect("unread", None, 0, from_, to, label=label, unknown=unknown)


@pytest.mark.parametrize("spelled", READERS)
def test_a_document_gives_our_own(spelled: str) -> None:
    assert {one.from_ for one in read_effects(sample(spelled))} == {US}


@pytest.mark.parametrize(("value", "unlimited"), [(UNLIMITED - 1, False), (UNLIMITED, True), (MAX_UINT256, True)])
def test_a_transfer_of_very_much_is_unlimited(value: int, unlimited: bool) -> None:
    name = "TransferWithAuthorization"
    assert read_effects(sample(kind(name), to=OTHER, value=str(value))) == (
        Effect("transfer", f"evm:8453:{TOKEN}", value, US, OTHER, label=name, unlimited=unlimited),
    )


@pytest.mark.parametrize("allowed", [True, False])
def test_a_permit_of_dai_is_all_or_nothing(allowed: bool) -> None:
    (effect,) = read_effects(sample(kind("Permit(address holder"), DOMAIN, allowed=allowed))
    amount = MAX_UINT256 if allowed else 0
    assert effect == Effect(
        "approval",
        f"evm:8453:{TOKEN}",
        amount,
        US,
        None,
        SPENDER,
        unlimited=allowed,
        label="Permit",
        revokes=not allowed,
    )


def test_a_transfer_of_circles_gateway_is_an_unknown_kind_and_is_ours() -> None:
    name = "TransferWithAuthorization"
    assert read_effects(sample(kind(name), DOMAIN | {"name": "GatewayWalletBatched"})) == (
        unread(name, TOKEN, unknown=True),
    )


SOLD = Effect("transfer", f"evm:8453:{TOKEN}", 5, US, SPENDER, label="PermitWitnessTransferFrom")
PERMITTED = {"token": TOKEN, "amount": 5}


def test_an_unknown_witness_is_unread_beside_a_transfer_that_we_make() -> None:
    order = with_witness("Odd(address to,uint256 amount)", domain=PERMIT2_DOMAIN, permitted=PERMITTED)
    assert read_effects(order) == (SOLD, unread(WITNESS, SPENDER))


@pytest.mark.parametrize("witness", [each for each in WITNESSES if not each.startswith("Witness(")])
def test_a_known_witness_is_read_and_an_array_of_it_is_none(witness: str) -> None:
    order = with_witness(witness, domain=PERMIT2_DOMAIN, permitted=PERMITTED)
    value = {**order.value["witness"], "info": {**order.value["witness"]["info"], "reactor": SPENDER}}
    one = read_effects(with_witness(witness, domain=PERMIT2_DOMAIN, permitted=PERMITTED, witness=value))
    assert one[0] == SOLD
    assert {effect.label for effect in one[1:]} <= {OTHERS}
    assert {effect.from_ for effect in one} == {US}

    name = witness.split("(", 1)[0]
    fields = f"TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,{name}[] witness"
    spelled = f"PermitWitnessTransferFrom({fields})TokenPermissions(address token,uint256 amount){witness}"
    several = read_effects(sample(spelled, PERMIT2_DOMAIN, permitted=PERMITTED, witness=[value]))
    assert several == (SOLD, unread(WITNESS, SPENDER))


def test_whom_an_order_pays_besides_is_told_and_so_is_what_we_sell() -> None:
    order = kind("Order(address sellToken")
    assert read_effects(sample(order, receiver=PAID, sellToken=TOKEN, sellAmount="50", feeAmount="3")) == (
        Effect("transfer", f"evm:1:{TOKEN}", 53, US, at(COW), label="Order"),
        unread(OTHERS, PAID),
    )
    most = sample(order, receiver=US, sellToken=TOKEN, sellAmount=str(MAX_UINT256), feeAmount=0)
    assert read_effects(most) == (
        Effect("transfer", f"evm:1:{TOKEN}", MAX_UINT256, US, at(COW), label="Order", unlimited=True),
    )


def test_both_sides_of_an_order_of_0x_count_where_both_are_ours() -> None:
    both = {"makerToken": TOKEN, "makerAmount": 5, "takerToken": OTHER, "takerAmount": 6}
    assert read_effects(sample(kind("RfqOrder"), **both, maker=US, taker=US)) == (
        Effect("transfer", f"evm:1:{TOKEN}", 5, US, US, label="RfqOrder"),
        Effect("transfer", f"evm:1:{OTHER}", 6, US, US, label="RfqOrder"),
    )
    (given,) = read_effects(sample(kind("RfqOrder"), **both, maker=US, taker=ZERO))
    assert (given.from_, given.to) == (US, at(ZERO_EX))


def test_of_seaport_only_our_offers_count() -> None:
    order = plain("OrderComponents", structs_of(COMPONENTS)) | {"offer": [ITEM], "consideration": []}
    spelled = "BulkOrder(OrderComponents[2][2] tree)" + COMPONENTS
    nobodys = order | {"offerer": ZERO}
    effects = read_effects(sample(spelled, SEAPORT, tree=[[order, nobodys], [nobodys, nobodys]]))
    assert effects == (Effect("transfer", f"evm:1:{TOKEN}", 9, US, at(SEAPORT), label="BulkOrder"),)


@pytest.mark.parametrize(
    ("changed", "into"),
    [
        ("[2][2] tree)", "[2][2] tree,uint256 more)"),
        ("uint256 counter", "uint128 counter"),
        ("[2][2] tree)", "[3] tree)"),
        ("[2][2] tree)", "[2][2] leaves)"),
    ],
)
def test_a_tree_of_other_orders_is_unread(changed: str, into: str) -> None:
    spelled = "BulkOrder(OrderComponents[2][2] tree)" + COMPONENTS
    read_ = read_effects(sample(spelled, SEAPORT))
    assert {one.kind for one in read_} != {"unread"}
    assert read_effects(sample(spelled.replace(changed, into, 1), SEAPORT)) in (
        (unread("BulkOrder", at(SEAPORT)),),
        (unread("BulkOrder", at(SEAPORT), unknown=True),),
    )


# As OpenSea publishes them: 1.1, 1.2, 1.4, 1.5 and 1.6.
SEAPORTS = [
    "0x00000000006c3852cbEf3e08E8dF289169EdE581",
    "0x00000000000006c7676171937C444f6BDe3D6282",
    "0x00000000000001ad428e4906aE43D8F9852d0dD6",
    "0x00000000000000ADc04C56Bf30aC9d3c0aAF14dC",
    "0x0000000000000068F116a894984e2DB1123eB395",
]


@pytest.mark.parametrize("contract", SEAPORTS)
def test_an_order_is_read_at_every_seaport_and_nowhere_else(contract: str) -> None:
    domain = SEAPORT | {"verifyingContract": contract}
    (given,) = read_effects(sample(COMPONENTS, domain, offer=[ITEM], consideration=[]))
    assert (given.kind, given.amount, given.to) == ("transfer", 9, contract.lower())
    elsewhere = SEAPORT | {"verifyingContract": contract[:-1].lower() + ("1" if contract[-1] != "1" else "2")}
    assert {one.kind for one in read_effects(sample(COMPONENTS, elsewhere, offer=[ITEM], consideration=[]))} == {
        "unread"
    }


def test_an_order_of_seaport_that_gives_nothing_is_unread_whomever_it_pays() -> None:
    paid = ITEM | {"recipient": PAID}
    assert read_effects(sample(COMPONENTS, offer=[], consideration=[paid])) == (unread("OrderComponents", at(SEAPORT)),)
    assert read_effects(sample(COMPONENTS, offer=[ITEM], consideration=[paid])) == (
        Effect("transfer", f"evm:1:{TOKEN}", 9, US, at(SEAPORT), label="OrderComponents"),
        unread(OTHERS, PAID),
    )


def test_an_order_of_polymarket_gives_to_its_exchange_and_to_no_other() -> None:
    spelled, coin = kind("Order(uint256 salt"), "0x2791bca1f2de4661ed88a30c99a7a9449aa84174"
    assert read_effects(sample(spelled, side=0, makerAmount="50")) == (
        Effect("transfer", f"evm:137:{coin}", 50, US, at(POLYMARKET), label="Order"),
    )
    elsewhere = POLYMARKET | {"verifyingContract": OTHER}
    assert read_effects(sample(spelled, elsewhere, side=0, makerAmount="50")) == (unread("Order", OTHER),)


def test_a_safe_gives_its_own_and_is_told_to_pay_for_gas() -> None:
    assert read_effects(sample(SAFE, to=OTHER, operation=1)) == (unread("SafeTx", OTHER),)
    assert read_effects(sample(SAFE, to=OTHER, value="7", gasPrice=1, refundReceiver=SPENDER)) == (
        Effect("transfer", "evm:native", 7, TOKEN, OTHER, label="SafeTx"),
        unread(REFUND, SPENDER),
    )


def test_a_safe_that_calls_itself_is_unread_unless_it_does_nothing() -> None:
    safe = at(DOMAIN)
    called = read_effects(sample(SAFE, to=safe, value=0, data="0x12345678"))
    assert [(one.kind, one.label, one.from_, one.to) for one in called] == [
        ("unread", "all of the call", safe, safe),
        ("unread", "SafeTx", US, safe),
    ]
    # So a nonce is used up.
    assert read_effects(sample(SAFE, to=safe, value=0)) == (
        Effect("transfer", "evm:native", 0, safe, safe, label="SafeTx"),
    )
    assert len(read_effects(sample(SAFE, to=OTHER, value=0, data="0x12345678"))) == 1


def test_a_call_in_our_name_counts_its_coins_and_is_told_as_the_document() -> None:
    forwarded = read_effects(sample(FORWARD, to=SPENDER, value=7, data=TRANSFER))
    assert [(one.kind, one.amount, one.from_, one.label) for one in forwarded] == [
        ("transfer", 7, US, "ForwardRequest"),
        ("transfer", 5, US, "ForwardRequest"),
        ("unread", 0, US, "coins beside a call that takes none"),
    ]
    subject = subject_of(read(sample(kind("MetaTransaction"), functionSignature=TRANSFER)), US)
    assert [(one.contract, one.native_value) for one in subject.calls] == [(TOKEN, 0)]
    assert [one.label for one in subject.effects] == ["MetaTransaction"]


def test_a_receiver_at_hyperliquid_is_paid_by_us() -> None:
    spelled = kind("HyperliquidTransaction:UsdSend")
    assert read_effects(sample(spelled, destination="0x" + "AB" * 20)) == (
        unread("HyperliquidTransaction:UsdSend", "0x" + "ab" * 20),
    )
