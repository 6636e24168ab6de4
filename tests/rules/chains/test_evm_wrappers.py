"""Calls that hold other calls: each inner one is read as if it stood alone, with eth-abi as the independent encoder."""

from typing import Any

import pytest
from eth_abi import encode
from eth_utils import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.chains.evm.calldata import decode
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.wrappers import WRAPPERS
from custody.chains.types import Call, Effect

US, OUTER, TOKEN, OTHER = ("0x" + digit * 40 for digit in "1234")
CHAIN = 8453


def call(signature: str, types: list[str], *arguments: Any) -> bytes:
    return keccak(text=signature)[:4] + encode(types, arguments)


TRANSFER = call("transfer(address,uint256)", ["address", "uint256"], OTHER, 5)
FOREIGN = bytes.fromhex("deadbeef")

# Each signature, whether it carries coins to its calls, and how the calls go into its arguments.
SIGNATURES: dict[str, tuple[bool, Any]] = {
    "multicall(bytes[])": (False, lambda calls: [[data for _, _, data in calls]]),
    "multicall(uint256,bytes[])": (False, lambda calls: [9, [data for _, _, data in calls]]),
    "multicall(bytes32,bytes[])": (False, lambda calls: [b"h" * 32, [data for _, _, data in calls]]),
    "batch(bytes[],bool)": (False, lambda calls: [[data for _, _, data in calls], True]),
    "aggregate((address,bytes)[])": (False, lambda calls: [[(to, data) for to, _, data in calls]]),
    "blockAndAggregate((address,bytes)[])": (False, lambda calls: [[(to, data) for to, _, data in calls]]),
    "tryAggregate(bool,(address,bytes)[])": (False, lambda calls: [True, [(to, data) for to, _, data in calls]]),
    "tryBlockAndAggregate(bool,(address,bytes)[])": (
        False,
        lambda calls: [True, [(to, data) for to, _, data in calls]],
    ),
    "aggregate3((address,bool,bytes)[])": (False, lambda calls: [[(to, True, data) for to, _, data in calls]]),
    "aggregate3Value((address,bool,uint256,bytes)[])": (
        True,
        lambda calls: [[(to, True, value, data) for to, value, data in calls]],
    ),
    "multicall((address,bytes)[])": (False, lambda calls: [[(to, data) for to, _, data in calls]]),
    "multicall(address[],bytes[])": (
        False,
        lambda calls: [[to for to, _, _ in calls], [data for _, _, data in calls]],
    ),
    "execute(address,uint256,bytes)": (True, lambda calls: list(calls[0])),
    "execute(address,uint256,bytes,uint8)": (True, lambda calls: [*calls[0], 0]),
    "executeCall(address,uint256,bytes)": (True, lambda calls: list(calls[0])),
    "execTransactionFromModule(address,uint256,bytes,uint8)": (True, lambda calls: [*calls[0], 0]),
    "execute((address,uint256,bytes)[])": (True, lambda calls: [calls]),
    "executeBatch((address,uint256,bytes)[])": (True, lambda calls: [calls]),
    "executeBatch(address[],bytes[])": (
        False,
        lambda calls: [[to for to, _, _ in calls], [data for _, _, data in calls]],
    ),
    "executeBatch(address[],uint256[],bytes[])": (
        True,
        lambda calls: [list(column) for column in zip(*calls, strict=True)],
    ),
    "execute(bytes32,bytes)": (
        True,
        lambda calls: [b"\x01" + bytes(31), encode(["(address,uint256,bytes)[]"], [calls])],
    ),
    "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)": (
        True,
        lambda calls: [*calls[0], 0, 0, 0, 0, OTHER, OTHER, b"s" * 65],
    ),
}
ONE = {name for name in SIGNATURES if name.startswith(("execute(address", "executeCall", "execTransaction"))}
OWN = {"multicall(bytes[])", "multicall(uint256,bytes[])", "multicall(bytes32,bytes[])", "batch(bytes[],bool)"}


def types_of(signature: str) -> list[str]:
    """The argument types, split at the commas that stand in no tuple."""
    found, depth = [""], 0
    for letter in signature[signature.index("(") + 1 : -1]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def wrap(signature: str, calls: list[tuple[str, int, bytes]]) -> bytes:
    return call(signature, types_of(signature), *SIGNATURES[signature][1](calls))


def read(data: bytes, value: int = 0) -> tuple[tuple[Effect, ...], tuple[Call, ...]]:
    return decode(OUTER, value, data, CHAIN, US)


def test_every_wrapper_is_tried_here() -> None:
    assert {"0x" + keccak(text=name)[:4].hex() for name in SIGNATURES} == set(WRAPPERS)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_inner_calls_are_read_as_if_they_stood_alone(signature: str) -> None:
    calls = [(TOKEN, 0, TRANSFER)] if signature in ONE else [(TOKEN, 0, TRANSFER), (TOKEN, 0, FOREIGN)]

    effects, listed = read(wrap(signature, calls))

    target = OUTER if signature in OWN else TOKEN
    alone = [decode(target, 0, data, CHAIN, US) for _, _, data in calls]
    assert effects == tuple(effect for found, _ in alone for effect in found)
    assert listed[1:] == tuple(one for _, found in alone for one in found)
    assert (listed[0].contract, listed[0].apart) == (OUTER, True)


@pytest.mark.parametrize("signature", [name for name, (carries, _) in SIGNATURES.items() if carries])
def test_coins_that_are_handed_on_count_where_they_go_and_the_rest_as_kept(signature: str) -> None:
    effects, _ = read(wrap(signature, [(OTHER, 3, b"")]), value=5)

    assert effects == (
        Effect("transfer", EVM_NATIVE, 2, US, OUTER),
        Effect("transfer", EVM_NATIVE, 3, US, OTHER),
    )


def test_coins_beyond_those_sent_along_count_too() -> None:
    effects, _ = read(wrap("execute(address,uint256,bytes)", [(OTHER, 3, b"")]), value=1)

    assert [(one.amount, one.to) for one in effects] == [(0, OUTER), (3, OTHER)]


SINGLE = bytes(32), bytes.fromhex(TOKEN[2:]) + bytes(32) + TRANSFER


def by_mode(mode: int, calls: bytes) -> bytes:
    return call("execute(bytes32,bytes)", ["bytes32", "bytes"], bytes((mode,)) + bytes(31), calls)


def test_one_call_of_an_account_by_mode_is_packed() -> None:
    effects, listed = read(call("execute(bytes32,bytes)", ["bytes32", "bytes"], *SINGLE))
    assert (effects, listed[1:]) == decode(TOKEN, 0, TRANSFER, CHAIN, US)

    # The shortest has no data: it only pays.
    effects, listed = read(by_mode(0, bytes.fromhex(TOKEN[2:]) + (7).to_bytes(32)))
    assert (effects, listed[1:]) == decode(TOKEN, 7, b"", CHAIN, US)


BATCHED = encode(["(address,uint256,bytes)[]"], [[(TOKEN, 0, TRANSFER)]])


@pytest.mark.parametrize(
    ("mode", "calls", "told"),
    [
        (1, BATCHED, True),
        (2, BATCHED, False),
        (0xFE, BATCHED, False),
        (1, BATCHED + b"\1", False),
        (1, BATCHED + bytes(32), False),
        # In the padding behind the data of the call within, and in the word of its address.
        (1, BATCHED[:-1] + b"\1", False),
        (1, BATCHED[: 3 * 32] + b"\1" + BATCHED[3 * 32 + 1 :], False),
        (1, BATCHED[:-1] + b"\1" + bytes(32), False),
    ],
)
def test_a_batch_by_mode_is_read_to_the_letter_or_not_at_all(mode: int, calls: bytes, told: bool) -> None:
    data = by_mode(mode, calls)
    effects, listed = read(data)

    if told:
        assert (effects, listed[1:]) == decode(TOKEN, 0, TRANSFER, CHAIN, US)
    else:
        assert [(one.kind, one.label, one.size) for one in effects] == [("unread", "all of the call", len(data))]
        assert [one.apart for one in listed] == [False]


SAFE = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"


@pytest.mark.parametrize(
    "data",
    [
        call("execute(address,uint256,bytes,uint8)", ["address", "uint256", "bytes", "uint8"], TOKEN, 0, TRANSFER, 1),
        call(SAFE, types_of(SAFE), TOKEN, 0, TRANSFER, 1, 0, 0, 0, OTHER, OTHER, b""),
        call(SAFE, types_of(SAFE), TOKEN, 0, TRANSFER, 0, 0, 0, 1, OTHER, OTHER, b""),
        call("execute(bytes32,bytes)", ["bytes32", "bytes"], b"\xff" + bytes(31), SINGLE[1]),
        call("execute(bytes32,bytes)", ["bytes32", "bytes"], bytes(32), bytes(51)),
        call("execute(bytes32,bytes)", ["bytes32", "bytes"], b"\x01" + bytes(31), TRANSFER),
        call("executeBatch(address[],bytes[])", ["address[]", "bytes[]"], [TOKEN], [TRANSFER, TRANSFER]),
        call("multicall(bytes[])", ["bytes[]"], []),
        keccak(text="multicall(bytes[])")[:4],
    ],
    ids=["delegated", "Safe delegated", "Safe refunds", "mode", "short", "no batch", "columns", "empty", "nothing"],
)
def test_calls_that_cannot_be_told_leave_the_whole_unread(data: bytes) -> None:
    effects, listed = read(data)

    assert [(one.kind, one.label, one.size) for one in effects] == [("unread", "all of the call", len(data))]
    assert [one.apart for one in listed] == [False]


@pytest.mark.parametrize("signature", SIGNATURES)
@given(st.data())
@settings(max_examples=30)
def test_whatever_is_changed_nothing_is_lost_silently(signature: str, data: st.DataObject) -> None:
    """An order that is changed says the same, or something else, or that something is unread: never less."""
    original = wrap(signature, [(TOKEN, 0, TRANSFER)])
    kept = read(original)[0]
    position = data.draw(st.integers(4, len(original) - 1))
    changed = bytearray(original)
    changed[position] ^= data.draw(st.integers(1, 255))

    effects, _ = read(bytes(changed))

    told = [(one.kind, one.amount, one.to, one.call) for one in effects]
    same = [(one.kind, one.amount, one.to, one.call) for one in kept]
    # Fields that no reader counts: a deadline, a hash, whether one may fail, gas of a Safe, a mode's other bytes.
    ignored = not signature.startswith(("multicall(bytes[])", "aggregate(", "executeBatch(", "execute(address"))
    assert told != same or ignored
