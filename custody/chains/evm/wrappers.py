"""Calls that hold other calls, taken apart: each inner one is judged by itself, as if it stood alone."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from custody.chains.evm import abi
from custody.chains.evm.abi import NotCanonical, Type


class Inner(msgspec.Struct, frozen=True):
    """One call inside another; `target` None is the contract of the outer one, in the name of who called that."""

    target: str | None
    value: int
    data: bytes


type Taken = list[Inner]

_SINGLE, _BATCH = 0, 1
_ADDRESS = 20
_CALLS: list[Type] = [("address", "uint256", "bytes")]


def take_apart(selector: str, body: bytes) -> tuple[Taken, abi.Arguments] | None:
    """Give the calls inside a call of this selector; None if it holds none. Raises NotCanonical if they can't be told.

    A contract of another kind may have the same selector: what it does with these bytes nobody knows, and a list that
    names its inner calls permits no more than they do.
    """
    known = WRAPPERS.get(selector)
    if known is None:
        return None
    types, split = known
    read = abi.decode(types, body)
    inner = split(*read.values)
    if not inner:
        raise NotCanonical
    return inner, read


def _own(*arguments: Any) -> Taken:
    calls = next(one for one in arguments if isinstance(one, list))
    return [Inner(None, 0, data) for data in calls]


def _pairs(*arguments: Any) -> Taken:
    return [Inner(one[0], 0, one[-1]) for one in arguments[-1]]


def _with_values(*arguments: Any) -> Taken:
    return [Inner(one[0], one[-2], one[-1]) for one in arguments[-1]]


def _one(target: str, value: int, data: bytes, *more: Any) -> Taken:
    # An operation of another number runs foreign code in the account's own name, which may do anything.
    return [Inner(target, value, data)] if not more or more[0] == 0 else []


def _safe(target: str, value: int, data: bytes, operation: int, *refund: Any) -> Taken:
    # With a price of gas the Safe pays a refund to whom the call names.
    return _one(target, value, data, operation) if refund[2] == 0 else []


def _columns(targets: list[str], *columns: Any) -> Taken:
    values, calls = ([0] * len(targets), columns[0]) if len(columns) == 1 else columns
    if not len(targets) == len(values) == len(calls):
        return []
    return [Inner(*one) for one in zip(targets, values, calls, strict=True)]


def _by_mode(mode: bytes, calls: bytes) -> Taken:
    # ERC-7579: the first byte says one call or several, the second what becomes of one that fails.
    if mode[0] == _SINGLE and len(calls) >= _ADDRESS + abi.WORD:
        value = int.from_bytes(calls[_ADDRESS : _ADDRESS + abi.WORD])
        return [Inner("0x" + calls[:_ADDRESS].hex(), value, calls[_ADDRESS + abi.WORD :])]
    if mode[0] == _BATCH:
        read = abi.decode((_CALLS,), calls)
        return [] if read.dirty or read.behind else _with_values(*read.values)
    return []


WRAPPERS: dict[str, tuple[Sequence[Type], Callable[..., Taken]]] = {
    # Of routers, position managers and tokens: to themselves, in the name of the caller.
    "0xac9650d8": ((["bytes"],), _own),  # multicall(bytes[])
    "0x5ae401dc": (("uint256", ["bytes"]), _own),  # multicall(uint256,bytes[])
    "0x1f0464d1": (("bytes32", ["bytes"]), _own),  # multicall(bytes32,bytes[])
    "0xd2423b51": ((["bytes"], "bool"), _own),  # batch(bytes[],bool)
    # Multicall3 and those before it.
    "0x252dba42": (([("address", "bytes")],), _pairs),  # aggregate((address,bytes)[])
    "0xc3077fa9": (([("address", "bytes")],), _pairs),  # blockAndAggregate((address,bytes)[])
    "0xbce38bd7": (("bool", [("address", "bytes")]), _pairs),  # tryAggregate(bool,(address,bytes)[])
    "0x399542e9": (("bool", [("address", "bytes")]), _pairs),  # tryBlockAndAggregate(bool,(address,bytes)[])
    "0x82ad56cb": (([("address", "bool", "bytes")],), _pairs),  # aggregate3((address,bool,bytes)[])
    "0x174dea71": (([("address", "bool", "uint256", "bytes")],), _with_values),  # aggregate3Value((...)[])
    "0xcaa5c23f": (([("address", "bytes")],), _pairs),  # multicall((address,bytes)[])
    "0x63fb0b96": ((["address"], ["bytes"]), _columns),  # multicall(address[],bytes[])
    # Accounts that are contracts.
    "0xb61d27f6": (("address", "uint256", "bytes"), _one),  # execute(address,uint256,bytes)
    "0x51945447": (("address", "uint256", "bytes", "uint8"), _one),  # execute(address,uint256,bytes,uint8)
    "0x468721a7": (("address", "uint256", "bytes", "uint8"), _one),  # execTransactionFromModule(...)
    "0x9e5d4c49": (("address", "uint256", "bytes"), _one),  # executeCall(address,uint256,bytes)
    "0x3f707e6b": ((_CALLS,), _with_values),  # execute((address,uint256,bytes)[])
    "0x34fcd5be": ((_CALLS,), _with_values),  # executeBatch((address,uint256,bytes)[])
    "0x18dfb3c7": ((["address"], ["bytes"]), _columns),  # executeBatch(address[],bytes[])
    "0x47e1da2a": ((["address"], ["uint256"], ["bytes"]), _columns),  # executeBatch(address[],uint256[],bytes[])
    "0xe9ae5c53": (("bytes32", "bytes"), _by_mode),  # execute(bytes32,bytes)
    # execTransaction of a Safe: to, value, data, operation, amounts and price of gas, refunds, signatures.
    "0x6a761202": (
        ("address", "uint256", "bytes", "uint8", "uint256", "uint256", "uint256", "address", "address", "bytes"),
        _safe,
    ),
}
