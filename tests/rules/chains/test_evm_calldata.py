"""Effects of contract calls, with eth-abi as the independent encoder."""

from typing import Any

import pytest
from eth_abi import encode
from eth_utils import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.chains.evm import abi
from custody.chains.evm.calldata import decode
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.selectors import MAX_EFFECTS, PERMIT2, READERS
from custody.chains.types import UNLIMITED, Call, Effect
from custody.kit.shapes import MAX_UINT256

US, TOKEN, OTHER, SPENDER = ("0x" + digit * 40 for digit in "1234")
CHAIN = 8453
ASSET = f"evm:{CHAIN}:{TOKEN}"
SIGNED = [27, b"\x01" * 32, b"\x02" * 32]

amounts = st.sampled_from([0, 1, UNLIMITED - 1, UNLIMITED, MAX_UINT256]) | st.integers(0, MAX_UINT256)


def calldata(signature: str, *arguments: Any) -> bytes:
    types = signature[signature.index("(") + 1 : -1].split(",")
    return keccak(text=signature)[:4] + encode(types, arguments)


def read(data: bytes, *, to: str = TOKEN, value: int = 0) -> tuple[tuple[Effect, ...], tuple[Call, ...]]:
    return decode(to, value, data, CHAIN, US)


def only(data: bytes, *, to: str = TOKEN) -> Effect:
    (effect,), (call,) = read(data, to=to)
    assert effect.call == call
    return effect


TRANSFER = calldata("transfer(address,uint256)", OTHER, 5)
PERMIT = "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"
DAI = "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)"
WITH_AUTHORIZATION = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
BATCH = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"

MOVES_OURS = [
    TRANSFER,
    calldata("transferFrom(address,address,uint256)", US, OTHER, 5),
    calldata(WITH_AUTHORIZATION, US, OTHER, 5, 0, 9, b"\x03" * 32, *SIGNED),
    calldata(WITH_AUTHORIZATION.replace("transfer", "receive"), US, OTHER, 5, 0, 9, b"\x03" * 32, *SIGNED),
]
ALLOWS = [
    calldata("approve(address,uint256)", SPENDER, 5),
    calldata("increaseAllowance(address,uint256)", SPENDER, 5),
    calldata(PERMIT, US, SPENDER, 5, 9, *SIGNED),
]
REVOKES = [
    calldata("approve(address,uint256)", SPENDER, 0),
    calldata("decreaseAllowance(address,uint256)", SPENDER, 5),
    calldata("setApprovalForAll(address,bool)", SPENDER, False),
    calldata(DAI, US, SPENDER, 0, 9, False, *SIGNED),
]
SOMEBODY_ELSES = [
    calldata("transferFrom(address,address,uint256)", OTHER, US, 5),
    calldata("safeTransferFrom(address,address,uint256)", OTHER, US, 5),
    calldata(PERMIT, OTHER, SPENDER, 5, 9, *SIGNED),
    calldata(DAI, OTHER, SPENDER, 0, 9, True, *SIGNED),
    calldata(WITH_AUTHORIZATION, OTHER, US, 5, 0, 9, b"\x03" * 32, *SIGNED),
]
NEVER_READ = [
    b"\x01",
    b"\x01\x02\x03",
    bytes.fromhex("d0e30db0"),
    bytes.fromhex("a9059cbb"),
    calldata("withdraw(uint256)", 5),
    calldata("transferOwnership(address)", OTHER),
    calldata("upgradeTo(address)", OTHER),
    calldata("transferAndCall(address,uint256,bytes)", OTHER, 5, b""),
    calldata("execute(bytes,bytes[],uint256)", b"\x00", [b""], 9),
]


@given(amounts)
def test_no_data_is_a_plain_transfer(value: int) -> None:
    effects, calls = read(b"", to=OTHER, value=value)

    assert effects == (Effect("transfer", EVM_NATIVE, value, US, OTHER),)
    assert calls == ()


@pytest.mark.parametrize("data", MOVES_OURS)
def test_a_token_transfer_names_the_one_who_receives(data: bytes) -> None:
    effect = only(data)

    assert (effect.kind, effect.asset, effect.amount) == ("transfer", ASSET, 5)
    assert (effect.from_, effect.to) == (US, OTHER)
    assert effect.call == Call(
        CHAIN, TOKEN, "0x" + data[:4].hex(), recipient=OTHER, amount=5, decoded=True, arguments=data[4:]
    )


@pytest.mark.parametrize("data", ALLOWS)
def test_an_approval_names_the_spender(data: bytes) -> None:
    effect = only(data)

    assert (effect.kind, effect.asset, effect.amount, effect.unlimited) == ("approval", ASSET, 5, False)
    assert (effect.from_, effect.to, effect.spender) == (US, None, SPENDER)
    assert effect.call == Call(
        CHAIN, TOKEN, "0x" + data[:4].hex(), spender=SPENDER, amount=5, decoded=True, arguments=data[4:]
    )


@pytest.mark.parametrize("data", REVOKES)
def test_a_revocation_is_an_approval_of_nothing(data: bytes) -> None:
    effect = only(data)

    assert (effect.kind, effect.amount, effect.unlimited, effect.nft) == ("approval", 0, False, False)
    assert (effect.from_, effect.spender) == (US, SPENDER)


@given(amounts)
def test_an_approval_is_unlimited_from_the_bound_on(amount: int) -> None:
    assert only(calldata("approve(address,uint256)", SPENDER, amount)).unlimited is (amount >= 2**128)


def test_a_dai_permit_is_unlimited() -> None:
    effect = only(calldata(DAI, US, SPENDER, 0, 9, True, *SIGNED))

    assert (effect.kind, effect.amount, effect.unlimited) == ("approval", MAX_UINT256, True)


@pytest.mark.parametrize("data", SOMEBODY_ELSES + NEVER_READ, ids=lambda data: data[:4].hex())
def test_calls_of_unknown_contracts_or_selectors_are_unread(data: bytes) -> None:
    effect = only(data)

    assert (effect.kind, effect.asset, effect.amount, effect.to) == ("unread", None, 0, TOKEN)
    assert (effect.label, effect.size) == ("all of the call", len(data))
    selector = "0x" + (data[:4].hex() if len(data) >= 4 else "")
    garbled = selector in READERS and data not in SOMEBODY_ELSES
    assert effect.call == Call(CHAIN, TOKEN, selector, garbled=garbled, arguments=data[4:])

    (native, unread), (call,) = read(data, value=7)
    assert native == Effect("transfer", EVM_NATIVE, 7, US, TOKEN)
    assert (unread.call, call.native_value) == (call, 7)


READ = MOVES_OURS + ALLOWS + REVOKES


def beside(data: bytes, changed: bytes, value: int = 0) -> list[tuple[str | None, int | None]]:
    """Find where and how much is unread of a changed call that is read for the rest like the original."""
    original, (effects, calls) = only(data), read(changed, value=value)
    # An allowlist may vouch for what is unread of a call it lists.
    assert all(one.call == calls[0] for one in effects if one.kind == "unread")
    counted = [one for one in effects if one.kind != "unread" and one.asset != EVM_NATIVE]
    assert [(one.kind, one.asset, one.amount, one.to, one.spender) for one in counted] == [
        (original.kind, original.asset, original.amount, original.to, original.spender)
    ]
    return [(one.label, one.size) for one in effects if one.kind == "unread"]


@pytest.mark.parametrize("data", READ, ids=lambda data: data[:4].hex())
def test_a_call_is_read_with_coins_along_and_they_are_unread(data: bytes) -> None:
    assert beside(data, data, value=7) == [("coins beside a call that takes none", None)]

    (native, *_), (call,) = read(data, value=7)

    assert native == Effect("transfer", EVM_NATIVE, 7, US, TOKEN)
    assert (call.decoded, call.native_value) == (True, 7)


@pytest.mark.parametrize("position", [4, 15])
def test_an_address_is_read_beside_what_its_word_holds_more(position: int) -> None:
    dirty = TRANSFER[:position] + b"\x01" + TRANSFER[position + 1 :]

    assert beside(TRANSFER, dirty) == [("in the padding of the arguments", None)]


@pytest.mark.parametrize("data", READ, ids=lambda data: data[:4].hex())
@pytest.mark.parametrize("length", [1, 31, 32, 1_000])
def test_bytes_behind_the_arguments_are_unread_and_the_arguments_are_not(data: bytes, length: int) -> None:
    assert beside(data, data + bytes(length)) == [("behind the arguments", length)]


@pytest.mark.parametrize("data", READ, ids=lambda data: data[:4].hex())
def test_a_call_that_is_cut_short_is_unread(data: bytes) -> None:
    assert only(data[:-1]).label == "all of the call"


def test_a_boolean_of_two_is_true_and_more() -> None:
    approved = calldata("setApprovalForAll(address,bool)", SPENDER, True)

    assert beside(approved, approved[:-1] + b"\x02") == [("in the padding of the arguments", None)]


def test_only_what_takes_power_away_whatever_the_contract_revokes() -> None:
    # The same bytes of `approve` give NFT number 0 away elsewhere.
    assert [only(data).revokes for data in REVOKES] == [False, True, True, True]
    assert not any(only(data).revokes for data in MOVES_OURS + ALLOWS)
    assert only(calldata(PERMIT, US, SPENDER, 0, 9, *SIGNED)).revokes


NFTS = [
    (calldata("safeTransferFrom(address,address,uint256)", US, OTHER, 9), 1),
    (calldata("safeTransferFrom(address,address,uint256,bytes)", US, OTHER, 9, b"hi"), 1),
    (calldata("safeTransferFrom(address,address,uint256,uint256,bytes)", US, OTHER, 9, 4, b""), 4),
    (calldata(BATCH, US, OTHER, [9], [4], b"x" * 33), 4),
]


@pytest.mark.parametrize(("data", "count"), NFTS)
def test_an_nft_transfer_says_so(data: bytes, count: int) -> None:
    effect = only(data)

    assert (effect.kind, effect.asset, effect.nft) == ("transfer", ASSET, True)
    assert (effect.amount, effect.from_, effect.to, effect.label) == (count, US, OTHER, "token 9")


def test_an_nft_batch_has_one_effect_for_each_token() -> None:
    effects, (call,) = read(calldata(BATCH, US, OTHER, [1, 2], [3, 4], b""))

    assert [effect.amount for effect in effects] == [3, 4]
    assert (call.recipient, call.amount) == (OTHER, 7)


def test_an_nft_batch_of_too_many_tokens_is_unread() -> None:
    assert len(read(calldata(BATCH, US, OTHER, [1] * 100, [1] * 100, b""))[0]) == 100
    assert only(calldata(BATCH, US, OTHER, [1] * 101, [1] * 101, b"")).label == "all of the call"


@pytest.mark.parametrize("amount", [UNLIMITED - 1, UNLIMITED, MAX_UINT256])
def test_a_transfer_is_unlimited_from_the_bound_on(amount: int) -> None:
    assert only(calldata("transfer(address,uint256)", OTHER, amount)).unlimited is (amount >= UNLIMITED)


@pytest.mark.parametrize(("ids", "counts"), [([], []), ([1], [1, 2]), ([1] * 101, [1] * 101)])
def test_an_nft_batch_that_does_not_add_up_is_unread(ids: list[int], counts: list[int]) -> None:
    assert only(calldata(BATCH, US, OTHER, ids, counts, b"")).kind == "unread"


def test_approval_for_all_is_unlimited_and_no_limit_can_judge_it() -> None:
    data = calldata("setApprovalForAll(address,bool)", SPENDER, True)
    effect = only(data)

    call = Call(CHAIN, TOKEN, "0xa22cb465", spender=SPENDER, amount=MAX_UINT256, decoded=True, arguments=data[4:])
    assert effect == Effect(
        "approval", ASSET, MAX_UINT256, US, spender=SPENDER, unlimited=True, nft=True, label="every token", call=call
    )


def test_permit2_moves_and_allows_the_token_it_names() -> None:
    approval = only(calldata("approve(address,address,uint160,uint48)", TOKEN, SPENDER, 5, 9), to=PERMIT2)
    transfer = only(calldata("transferFrom(address,address,uint160,address)", US, OTHER, 5, TOKEN), to=PERMIT2)

    assert (approval.kind, approval.asset, approval.spender) == ("approval", ASSET, SPENDER)
    assert (transfer.kind, transfer.asset, transfer.to) == ("transfer", ASSET, OTHER)
    assert approval.call is not None
    assert approval.call.contract == PERMIT2


def test_permit2_moving_somebody_elses_is_unread() -> None:
    data = calldata("transferFrom(address,address,uint160,address)", OTHER, US, 5, TOKEN)

    assert only(data, to=PERMIT2).kind == "unread"


@pytest.mark.parametrize(
    "data",
    [
        calldata("approve(address,address,uint160,uint48)", TOKEN, SPENDER, 5, 9),
        calldata("transferFrom(address,address,uint160,address)", US, OTHER, 5, TOKEN),
    ],
)
def test_permit2_calls_to_another_contract_are_unread(data: bytes) -> None:
    assert only(data, to=OTHER).kind == "unread"


@pytest.mark.parametrize("outer", [("multicall(bytes[])",), ("multicall(uint256,bytes[])", 99)])
def test_a_multicall_is_the_sum_of_its_calls(outer: tuple[Any, ...]) -> None:
    data = calldata(*outer, [TRANSFER, ALLOWS[0]])

    effects, calls = read(data)

    assert [effect.kind for effect in effects] == ["transfer", "approval"]
    assert [call.selector for call in calls] == ["0x" + data[:4].hex(), "0xa9059cbb", "0x095ea7b3"]
    assert all(call.decoded for call in calls)


def whole(data: bytes, *, to: str = TOKEN) -> Effect:
    """A call of which nothing is read, though it holds others: no list permits it."""
    effect = only(data, to=to)
    assert (effect.kind, effect.label, effect.size) == ("unread", "all of the call", len(data))
    assert effect.call is not None
    assert not effect.call.apart
    return effect


def test_each_call_of_a_multicall_is_judged_as_if_it_stood_alone() -> None:
    foreign, suffixed = NEVER_READ[-1], TRANSFER + b"\x00"

    effects, calls = read(calldata("multicall(bytes[])", [TRANSFER, foreign, suffixed]))

    assert [(one.kind, one.label, one.size) for one in effects] == [
        ("transfer", None, None),
        ("unread", "all of the call", len(foreign)),
        ("transfer", None, None),
        ("unread", "behind the arguments", 1),
    ]
    assert [call.selector for call in calls] == ["0xac9650d8", "0xa9059cbb", "0x" + foreign[:4].hex(), "0xa9059cbb"]
    assert [one.call for one in effects] == [calls[1], calls[2], calls[3], calls[3]]


def test_a_call_of_the_contract_to_itself_is_unread_besides() -> None:
    """A contract may do in its own name what it does for nobody else."""
    effects, calls = read(calldata("executeBatch(address[],bytes[])", [TOKEN, OTHER], [TRANSFER, TRANSFER]))

    assert [(one.kind, one.label, one.call) for one in effects] == [
        ("transfer", None, calls[1]),
        ("unread", "a call of itself", calls[1]),
        ("transfer", None, calls[2]),
    ]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_an_empty_call_within_a_call_names_nothing(count: int) -> None:
    data = calldata("multicall(bytes[])", [b""] * count)
    if not count:
        whole(data)
        return

    effects, calls = read(data)

    assert [(one.kind, one.size) for one in effects] == [("unread", 0)] * count
    assert [call.selector for call in calls] == ["0xac9650d8"] + ["0x"] * count


def test_multicalls_nest_three_deep_and_no_deeper() -> None:
    nested = TRANSFER
    for _ in range(3):
        nested = calldata("multicall(bytes[])", [nested])

    assert read(nested)[0][0].kind == "transfer"
    effects, calls = read(calldata("multicall(bytes[])", [nested]))
    assert [one.kind for one in effects] == ["unread"]
    assert [call.apart for call in calls] == [True, True, True, False]


def test_a_multicall_of_too_many_effects_is_unread() -> None:
    assert len(read(calldata("multicall(bytes[])", [TRANSFER] * 100))[0]) == 100
    whole(calldata("multicall(bytes[])", [TRANSFER] * 101))


@pytest.mark.parametrize(
    ("where", "changed"), [(4 + 31, 64), (4 + 2 * 32 + 31, 64)], ids=["offset of the list", "offset of an item"]
)
def test_a_second_way_to_write_the_same_is_unread(where: int, changed: int) -> None:
    data = bytearray(calldata("multicall(bytes[])", [TRANSFER]))
    assert read(bytes(data))[0][0].kind == "transfer"

    data[where] = changed

    whole(bytes(data))


def test_padding_that_is_not_empty_is_unread() -> None:
    data = calldata("multicall(bytes[])", [TRANSFER])

    effects, calls = read(data[:-1] + b"\x01")

    assert [(one.kind, one.label, one.call) for one in effects] == [
        ("unread", "in the padding of the arguments", calls[0]),
        ("transfer", None, calls[1]),
    ]


def test_a_huge_count_is_refused_without_allocating() -> None:
    whole(bytes.fromhex("ac9650d8") + (32).to_bytes(32) + (2**255).to_bytes(32))


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=400))
@settings(max_examples=300)
def test_arbitrary_bytes_are_read_or_unread_and_never_an_error(selector: str, body: bytes) -> None:
    effects, calls = read(bytes.fromhex(selector[2:]) + body)

    assert effects
    assert calls[0].contract == TOKEN


@given(st.integers(4, len(TRANSFER) - 1), st.integers(1, 255))
def test_no_two_encodings_mean_the_same(position: int, flip: int) -> None:
    changed = TRANSFER[:position] + bytes((TRANSFER[position] ^ flip,)) + TRANSFER[position + 1 :]

    effects, _ = read(changed)

    assert effects[-1].kind == "unread" or (effects[0].to, effects[0].amount) != (OTHER, 5)


def test_addresses_come_out_in_lower_case() -> None:
    (effect,), (call,) = decode("0x" + "AB" * 20, 0, TRANSFER, CHAIN, "0x" + "CD" * 20)

    assert (effect.asset, effect.from_) == (f"evm:{CHAIN}:0x{'ab' * 20}", "0x" + "cd" * 20)
    assert call.contract == "0x" + "ab" * 20


@pytest.mark.parametrize(
    ("kind", "width"), [("address", 160), ("uint160", 160), ("uint48", 48), ("uint8", 8), ("bool", 1), ("uint256", 256)]
)
def test_a_word_is_dirty_from_the_first_bit_beyond_its_type(kind: str, width: int) -> None:
    largest = (1 << width) - 1
    clean = abi.decode((kind,), largest.to_bytes(32))
    assert (clean.dirty, clean.behind) == (False, 0)
    if width < 256:
        dirty = abi.decode((kind,), (largest | 1 << width).to_bytes(32))
        assert (dirty.dirty, dirty.values) == (True, clean.values)


def test_a_text_whose_padding_is_cut_short_is_not_canonical() -> None:
    whole_text = encode(["bytes"], [b"a" * 33])
    assert abi.decode(("bytes",), whole_text).values == (b"a" * 33,)
    for size in (1, 31, 32, 63):
        with pytest.raises(abi.NotCanonical):
            abi.decode(("bytes",), whole_text[:-size])


def test_a_list_is_read_up_to_the_end_of_the_call() -> None:
    assert abi.decode((["uint256"],), encode(["uint256[]"], [[7, 8]])).values == ([7, 8],)
    assert abi.decode((["uint256"],), encode(["uint256[]"], [[]])).values == ([],)
    with pytest.raises(abi.NotCanonical):
        abi.decode((["uint256"],), encode(["uint256[]"], [[7, 8]])[:-1])


def test_a_batch_of_more_than_is_read_hides_what_it_moves() -> None:
    batch = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"

    for count, garbled in ((MAX_EFFECTS, False), (MAX_EFFECTS + 1, True)):
        ids = list(range(count))
        _, [call] = read(calldata(batch, US, OTHER, ids, ids, b""))
        assert call.garbled is garbled


def test_a_batch_of_unequal_lists_hides_what_it_moves() -> None:
    batch = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"

    _, [call] = read(calldata(batch, US, OTHER, [7], [1, 1], b""))

    assert (call.decoded, call.garbled) == (False, True)


@pytest.mark.parametrize(
    ("signature", "values"),
    [
        ("transferFrom(address,address,uint256)", (TOKEN, OTHER, 7)),
        ("safeTransferFrom(address,address,uint256)", (TOKEN, OTHER, 7)),
        ("safeTransferFrom(address,address,uint256,uint256,bytes)", (TOKEN, OTHER, 7, 1, b"")),
    ],
)
def test_an_account_that_a_wallet_has_move_its_own_tokens_is_the_wallet(
    signature: str, values: tuple[object, ...]
) -> None:
    """`execute` of a contract that holds tokens: what leaves it left us."""
    inner = calldata(signature, *values)

    effects, calls = read(calldata("execute(address,uint256,bytes)", "0x" + "5" * 40, 0, inner))

    assert [call.decoded for call in calls] == [True, True]
    assert [(one.kind, one.to) for one in effects if one.kind != "unread"] == [("transfer", OTHER)]
