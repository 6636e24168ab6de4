"""Kinds of typed data that the world signs: what of each is read, what counts, and what stays unread."""

import re
from typing import Any

import msgspec
import pytest
from eth_abi import encode

from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_effects import subject_of
from custody.chains.evm.typed_kinds import CALLS, READERS, UNREAD, WITNESSES
from custody.chains.types import Effect
from tests.rules.chains.typed_samples import (
    COW,
    DOMAIN,
    EXCHANGE,
    OTHER,
    PERMIT2_DOMAIN,
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

READ = (*READERS, *CALLS)
PERMITTED = {"token": TOKEN, "amount": "5"}
EXACT, UPTO = "0x402085c248EeA27D92E8b30b2C58ed07f9E20001", "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002"
PAID = "0x" + "9" * 40


def brief(effects: tuple[Effect, ...]) -> list[tuple[Any, ...]]:
    return [(one.kind, one.asset, one.amount, one.to or one.spender) for one in effects]


# ---- every kind alike


@pytest.mark.parametrize("spelled", READ)
def test_a_sample_of_every_kind_is_read(spelled: str) -> None:
    effects = read_effects(sample(spelled))

    assert effects
    # Who gets what a CoW order buys is not us.
    more = ["unread"] if spelled.startswith("Order(address sellToken") else []
    assert [one.kind for one in effects] == (["unread"] if "Hyperliquid" in spelled else [effects[0].kind, *more])
    assert not any(one.unknown for one in effects)


@pytest.mark.parametrize("spelled", READ)
@pytest.mark.parametrize("lacking", ["chainId", "verifyingContract"])
def test_a_kind_without_chain_or_contract_is_unread(spelled: str, lacking: str) -> None:
    whole = sample(spelled)
    domain = {name: value for name, value in whole.domain.items() if name != lacking}

    (effect,) = read_effects(sample(spelled, domain))

    assert (effect.kind, effect.unknown) == ("unread", False)


@pytest.mark.parametrize("spelled", READ)
def test_a_chain_or_contract_that_is_not_hashed_is_not_believed(spelled: str) -> None:
    """The domain says where it is for, and its declared type leaves that out of the hash."""
    believed = sample(spelled)
    declared = msgspec.structs.replace(
        believed, types=believed.types | msgspec.convert({"EIP712Domain": [{"name": "name", "type": "string"}]}, dict)
    )
    order = msgspec.convert(msgspec.to_builtins(declared) | {"domain": {"name": "n"} | believed.domain}, type(believed))

    subject = subject_of(read(order), US)

    assert [one.kind for one in subject.effects] == ["unread"]
    assert (subject.chain_id, subject.verifying_contract, subject.destination) == (None, None, None)


@pytest.mark.parametrize("spelled", READ)
def test_a_kind_under_another_name_or_inside_another_one_is_unread_but_known(spelled: str) -> None:
    structs = structs_of(spelled)
    primary = next(iter(structs))
    renamed = {("Renamed" if name == primary else name): fields for name, fields in structs.items()}
    within = {"Outer": [{"name": "it", "type": primary}], **structs}
    for types in (renamed, within):
        first = next(iter(types))
        body = {"domain": DOMAIN, "types": types, "primaryType": first, "value": plain(first, types)}
        (effect,) = read_effects(msgspec.convert(body, type(sample(spelled))))
        assert (effect.kind, effect.unknown, effect.label) == ("unread", False, first)


# A definition that refers to other types is tried with the kind that it is of.
ALONE = sorted(each for each in UNREAD if not re.search(r"[(,][A-Z]", each))


@pytest.mark.parametrize("spelled", ALONE)
def test_power_that_is_known_is_no_unknown_kind(spelled: str) -> None:
    effects = read_effects(sample(spelled, DOMAIN))

    assert effects
    assert not any(one.unknown for one in effects)


PINNED = [
    each for each in READERS if each.startswith(("PermitS", "PermitB", "PermitT", "Order", "Limit", "Rfq", "Otc"))
]


@pytest.mark.parametrize("spelled", PINNED)
def test_a_kind_of_one_contract_is_unread_at_another_one(spelled: str) -> None:
    assert [one.kind for one in read_effects(sample(spelled, DOMAIN))] == ["unread"]
    assert [one.kind for one in read_effects(sample(spelled))] != ["unread"]


# ---- Permit2 with a witness


@pytest.mark.parametrize(
    ("witness", "proxy"),
    [
        ("Witness(address to,uint256 validAfter)", EXACT),
        ("Witness(address to,address facilitator,uint256 validAfter)", UPTO),
    ],
    ids=["exact", "upto"],
)
def test_a_payment_of_x402_is_paid_to_whom_its_witness_names(witness: str, proxy: str) -> None:
    given = plain("Witness", structs_of(witness)) | {"to": PAID}

    effects = read_effects(with_witness(witness, permitted=PERMITTED, spender=proxy, witness=given))

    assert brief(effects) == [("transfer", f"evm:8453:{TOKEN}", 5, PAID)]


@pytest.mark.parametrize(
    ("witness", "proxy"),
    [
        ("Witness(address to,uint256 validAfter)", SPENDER),
        ("Witness(address to,uint256 validAfter)", UPTO),
        ("Witness(address to,address facilitator,uint256 validAfter)", EXACT),
        ("Witness(address to,uint256 validAfter,bytes extra)", EXACT),
        ("Witness(address to,uint128 validAfter)", EXACT),
        ("Activation(address activator,uint256 id)", SPENDER),
    ],
)
def test_of_another_witness_the_transfer_counts_and_the_rest_is_unread(witness: str, proxy: str) -> None:
    effects = read_effects(with_witness(witness, permitted=PERMITTED, spender=proxy))

    asset = f"evm:8453:{TOKEN}"
    assert brief(effects) == [("transfer", asset, 5, proxy.lower()), ("unread", None, 0, proxy.lower())]
    assert effects[1].label == "the witness beside a transfer"


@pytest.mark.parametrize("witness", [each for each in WITNESSES if not each.startswith("Witness(")])
def test_an_order_of_uniswapx_counts_its_input_where_it_names_the_reactor_that_takes_it(witness: str) -> None:
    name = witness.split("(", 1)[0]
    order = plain(name, structs_of(witness))
    named = order | {"info": order["info"] | {"reactor": SPENDER}}

    effects = read_effects(with_witness(witness, permitted=PERMITTED, witness=named))
    strange = read_effects(with_witness(witness, permitted=PERMITTED, witness=order))

    assert brief(effects) == [("transfer", f"evm:8453:{TOKEN}", 5, SPENDER)]
    assert [one.kind for one in strange] == ["transfer", "unread"]


@pytest.mark.parametrize("witness", [each for each in WITNESSES if not each.startswith("Witness(")])
def test_an_order_of_uniswapx_names_whom_it_pays_besides(witness: str) -> None:
    name = witness.split("(", 1)[0]
    order = plain(name, structs_of(witness))
    outputs = "baseOutputs" if "baseOutputs" in order else "outputs"
    (ours,) = order[outputs]
    named = order | {"info": order["info"] | {"reactor": SPENDER}, outputs: [ours, ours | {"recipient": PAID}]}

    effects = read_effects(with_witness(witness, permitted=PERMITTED, witness=named))

    assert brief(effects)[1:] == [("unread", None, 0, PAID)]


def test_every_token_of_a_batch_with_a_witness_counts() -> None:
    fields = "TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,bytes32 witness"
    spelled = f"PermitBatchWitnessTransferFrom({fields})TokenPermissions(address token,uint256 amount)"
    permitted = [{"token": TOKEN, "amount": 5}, {"token": OTHER, "amount": 6}]

    effects = read_effects(sample(spelled, PERMIT2_DOMAIN, permitted=permitted))

    assert [one.amount for one in effects] == [5, 6, 0]
    assert effects[2].label == "the witness beside a transfer"


@pytest.mark.parametrize(
    "fields",
    [
        "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline",
        "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,bytes32 witness,bytes32 more",
        "TokenPermissions permitted,address spender,uint256 deadline,uint256 nonce,bytes32 witness",
        "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,bytes32 witness",
    ],
)
def test_a_witness_that_permit2_could_not_check_is_unread(fields: str) -> None:
    # The last one has every field, and another type of what is permitted.
    width = 128 if fields.endswith("deadline,bytes32 witness") else 256
    spelled = f"PermitWitnessTransferFrom({fields})TokenPermissions(address token,uint{width} amount)"

    assert brief(read_effects(sample(spelled, PERMIT2_DOMAIN))) == [
        ("unread", None, 0, PERMIT2_DOMAIN["verifyingContract"])
    ]


# ---- markets


@pytest.mark.parametrize(("receiver", "besides"), [(US, []), (ZERO, []), (OTHER, [("unread", None, 0, OTHER)])])
def test_an_order_of_cow_counts_what_is_sold_and_names_who_gets_what_is_bought(
    receiver: str, besides: list[tuple[Any, ...]]
) -> None:
    order = sample(kind("Order(address sellToken"), receiver=receiver, sellToken=TOKEN, sellAmount="50", feeAmount="3")

    sold = ("transfer", f"evm:1:{TOKEN}", 53, COW["verifyingContract"].lower())
    assert brief(read_effects(order)) == [sold, *besides]


def test_an_order_of_cow_that_sells_more_than_there_can_be_is_unread() -> None:
    order = sample(kind("Order(address sellToken"), sellAmount=str(2**256 - 1), feeAmount="1")

    assert [one.kind for one in read_effects(order)] == ["unread"]


@pytest.mark.parametrize("name", ["LimitOrder(address", "RfqOrder", "OtcOrder"])
def test_an_order_of_0x_counts_what_we_give(name: str) -> None:
    both = {"makerToken": TOKEN, "makerAmount": 5, "takerToken": OTHER, "takerAmount": 6}

    made = read_effects(sample(kind(name), **both, maker=US, taker=SPENDER))
    open_to_all = read_effects(sample(kind(name), **both, maker=US, taker=ZERO))
    taken = read_effects(sample(kind(name), **both, maker=SPENDER, taker=US))
    neither = read_effects(sample(kind(name), **both, maker=SPENDER, taker=OTHER))

    assert brief(made) == [("transfer", f"evm:1:{TOKEN}", 5, SPENDER)]
    assert brief(open_to_all) == [("transfer", f"evm:1:{TOKEN}", 5, ZERO_EX["verifyingContract"].lower())]
    assert brief(taken) == [("transfer", f"evm:1:{OTHER}", 6, SPENDER)]
    assert [one.kind for one in neither] == ["unread"]


def offers(*kinds: int) -> list[dict[str, Any]]:
    item = {"token": TOKEN, "identifierOrCriteria": 7, "startAmount": "5", "endAmount": "9"}
    return [{"itemType": each, **item} for each in kinds]


def test_an_order_of_seaport_counts_the_most_of_what_it_offers() -> None:
    effects = read_effects(sample(kind("OrderComponents"), offer=offers(0, 1, 2, 3)))

    seaport = SEAPORT["verifyingContract"].lower()
    asset = f"evm:1:{TOKEN}"
    assert brief(effects) == [("transfer", "evm:native", 9, seaport)] + [("transfer", asset, 9, seaport)] * 3
    assert [(one.nft, one.label) for one in effects[2:]] == [(True, "token 7")] * 2
    assert [one.nft for one in effects[:2]] == [False, False]


def test_an_order_of_seaport_names_whom_it_pays_besides() -> None:
    paid = offers(1)[0] | {"recipient": PAID}

    effects = read_effects(
        sample(kind("OrderComponents"), offer=offers(1), consideration=[paid, paid, paid | {"recipient": US}])
    )

    assert [one.kind for one in effects] == ["transfer", "unread"]
    assert effects[1].to == PAID


@pytest.mark.parametrize(
    "changes", [{"offerer": OTHER}, {"offer": []}, {"offer": offers(1, 4)}, {"offer": offers(1) * 101}]
)
def test_an_order_of_seaport_that_is_not_ours_or_odd_is_unread(changes: dict[str, Any]) -> None:
    assert [one.kind for one in read_effects(sample(kind("OrderComponents"), **changes))] == ["unread"]


def test_every_order_of_a_tree_counts_by_itself() -> None:
    order = plain("OrderComponents", structs_of(kind("OrderComponents")))
    ours, empty = order | {"offer": offers(1)}, order | {"offerer": ZERO, "offer": []}
    spelled = "BulkOrder(OrderComponents[2][2] tree)" + kind("OrderComponents")

    effects = read_effects(sample(spelled, SEAPORT, tree=[[ours, ours], [ours, empty]]))
    strange = read_effects(sample(spelled, SEAPORT, tree=[[ours, ours], [ours, order | {"offerer": OTHER}]]))
    three = read_effects(sample(spelled.replace("[2][2]", "[3]"), SEAPORT, tree=[ours] * 3))

    assert [one.amount for one in effects] == [9, 9, 9]
    assert [one.kind for one in strange] == [one.kind for one in three] == ["unread"]


@pytest.mark.parametrize(("side", "nft"), [(0, False), (1, True)])
def test_an_order_of_polymarket_counts_what_it_gives(side: int, nft: bool) -> None:
    (effect,) = read_effects(sample(kind("Order(uint256 salt"), side=side, makerAmount="50", tokenId="7"))

    tokens = ["0x2791bca1f2de4661ed88a30c99a7a9449aa84174", "0x4d97dcd97ec945f40cf65f87097ace5ea0476045"]
    assert (effect.kind, effect.asset, effect.amount, effect.nft) == ("transfer", f"evm:137:{tokens[side]}", 50, nft)
    assert effect.label == ("token 7" if nft else "Order")


def test_an_order_of_polymarket_with_another_side_or_chain_is_unread() -> None:
    spelled = kind("Order(uint256 salt")
    elsewhere = sample(spelled).domain | {"chainId": 80002}

    assert [one.kind for one in read_effects(sample(spelled, side=2))] == ["unread"]
    assert [one.kind for one in read_effects(sample(spelled, elsewhere))] == ["unread"]


# ---- calls that others make in our name

TRANSFER = "0xa9059cbb" + encode(["address", "uint256"], [OTHER, 5]).hex()


def test_a_safe_transaction_is_read_as_what_the_safe_will_do() -> None:
    spelled = kind("SafeTx")
    safe = DOMAIN["verifyingContract"]

    coins = read_effects(sample(spelled, to=OTHER, value="7"))
    tokens = read_effects(sample(spelled, to=SPENDER, value="0", data=TRANSFER))
    odd = read_effects(sample(spelled, to=SPENDER, value="0", data="0x12345678"))

    assert brief(coins) == [("transfer", "evm:native", 7, OTHER)]
    assert brief(tokens) == [("transfer", f"evm:8453:{SPENDER}", 5, OTHER)]
    assert [one.kind for one in odd] == ["unread"]
    assert {one.from_ for one in (*coins, *tokens)} == {safe}


@pytest.mark.parametrize(
    "begin", ["SafeTx", "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,bytes"]
)
def test_a_call_within_a_document_is_one_that_a_list_must_know(begin: str) -> None:
    subject = subject_of(read(sample(kind(begin), to=SPENDER, value=0, data=TRANSFER)), US)

    (call,) = subject.calls
    assert (call.contract, call.selector, call.amount, call.recipient) == (SPENDER, "0xa9059cbb", 5, OTHER)
    assert [one.call for one in subject.effects] == [call]


def test_a_safe_transaction_that_delegates_or_pays_for_its_gas_is_unread_there() -> None:
    delegated = read_effects(sample(kind("SafeTx"), to=OTHER, operation=1))
    refunded = read_effects(sample(kind("SafeTx"), to=OTHER, value="7", gasPrice=1, refundReceiver=SPENDER))

    assert brief(delegated) == [("unread", None, 0, OTHER)]
    assert brief(refunded) == [("transfer", "evm:native", 7, OTHER), ("unread", None, 0, SPENDER)]


@pytest.mark.parametrize("begin", [each for each in CALLS if each.startswith("ForwardRequest")])
def test_a_forwarded_call_is_read_as_ours(begin: str) -> None:
    ours = read_effects(sample(begin, to=SPENDER, value=0, data=TRANSFER))
    foreign = read_effects(sample(begin, to=SPENDER, value=0, data=TRANSFER, **{"from": OTHER}))

    assert brief(ours) == [("transfer", f"evm:8453:{SPENDER}", 5, OTHER)]
    assert [one.kind for one in foreign] == ["unread"]


def test_a_meta_transaction_is_a_call_of_its_contract() -> None:
    ours = read_effects(sample(kind("MetaTransaction"), functionSignature=TRANSFER))
    foreign = read_effects(sample(kind("MetaTransaction"), functionSignature=TRANSFER, **{"from": OTHER}))

    assert brief(ours) == [("transfer", f"evm:8453:{TOKEN}", 5, OTHER)]
    assert [one.kind for one in foreign] == ["unread"]


# ---- what is at others, and what takes power back


@pytest.mark.parametrize("name", ["UsdSend", "Withdraw", "SpotSend", "SendAsset"])
def test_of_hyperliquid_the_receiver_is_read_and_the_rest_unread(name: str) -> None:
    spelled = kind(f"HyperliquidTransaction:{name}")

    (effect,) = read_effects(sample(spelled, destination="0x" + "AB" * 20))
    (strange,) = read_effects(sample(spelled, destination="somebody"))

    assert (effect.kind, effect.to, effect.label) == ("unread", "0x" + "ab" * 20, f"HyperliquidTransaction:{name}")
    assert (strange.kind, strange.to) == ("unread", EXCHANGE["verifyingContract"])


def test_a_transfer_of_circles_gateway_is_none_of_a_token() -> None:
    gateway = DOMAIN | {"name": "GatewayWalletBatched"}
    spelled = kind("TransferWithAuthorization")

    (effect,) = read_effects(sample(spelled, gateway))

    assert (effect.kind, effect.unknown, effect.asset) == ("unread", True, None)
    assert [one.kind for one in read_effects(sample(spelled))] == ["transfer"]


REVOKING = {
    "Permit(address owner": {"value": 0},
    "Permit(address holder": {"allowed": False},
    "PermitSingle": {"details": {"token": TOKEN, "amount": 0, "expiration": 9, "nonce": 0}},
    "PermitBatch(": {"details": [{"token": TOKEN, "amount": 0, "expiration": 9, "nonce": 0}]},
}


@pytest.mark.parametrize("begin", REVOKING)
def test_an_approval_of_nothing_revokes(begin: str) -> None:
    (effect,) = read_effects(sample(kind(begin), **REVOKING[begin]))
    more = read_effects(sample(kind(begin), **({"allowed": True} if "holder" in begin else {})))

    assert (effect.kind, effect.amount, effect.revokes) == ("approval", 0, True)
    assert [(one.amount > 0, one.revokes) for one in more] == [(True, False)]
