"""What a contract call does, read from its bytes.

Promise P6: judged on what the bytes do. Whatever is not read exactly is one `unread` effect, which no limit
covers: router and Safe calls, wrapping, ownership and upgrades among them.
"""

from custody.chains.evm import abi
from custody.chains.evm.address import parse_address
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.selectors import MAX_EFFECTS, READERS, Reading, Site
from custody.chains.types import Call, Effect

_SELECTOR = 4
_MAX_DEPTH = 3
_MULTICALLS = {"0xac9650d8": ("bytes[]",), "0x5ae401dc": ("uint256", "bytes[]")}


def decode(
    order_to: str, value: int, data: bytes, chain_id: int, sender: str
) -> tuple[tuple[Effect, ...], tuple[Call, ...]]:
    """Say what a transaction does: its effects, and the calls an allowlist has to know.

    Native value that comes with a call is a transfer of its own without a call attached: a contract-allowlist
    vouches for what a call does, never for the coins sent along.
    """
    contract, us = parse_address(order_to), parse_address(sender)
    native = Effect("transfer", EVM_NATIVE, value, us, contract)
    if not data:
        return (native,), ()
    # None of the calls we read accepts coins, so with coins it is a contract of another kind.
    read = None if value else _read(data, contract, chain_id, us, depth=0)
    effects, calls = read or _unread(data, contract, chain_id, us, value)
    return ((native, *effects) if value else effects), calls


type _Decoded = tuple[tuple[Effect, ...], tuple[Call, ...]]


def _unread(data: bytes, contract: str, chain_id: int, us: str, value: int) -> _Decoded:
    call = Call(chain_id, contract, _selector(data), native_value=value)
    return (Effect("unread", None, 0, us, contract, call=call),), (call,)


def _selector(data: bytes) -> str:
    # Shorter data reaches the contract's fallback: it calls something, but names nothing.
    return "0x" + data[:_SELECTOR].hex() if len(data) >= _SELECTOR else "0x"


def _read(data: bytes, contract: str, chain_id: int, us: str, *, depth: int) -> _Decoded | None:
    site = Site(chain_id, contract, _selector(data), us)
    body = data[_SELECTOR:]
    if types := _MULTICALLS.get(site.selector):
        return _read_each(site, types, body, depth=depth)
    known = READERS.get(site.selector)
    if known is None:
        return None
    types, reader = known
    try:
        reading: Reading = reader(site, *abi.decode(types, body))
    except abi.NotCanonical:
        return None
    if reading is None or len(reading[0]) > MAX_EFFECTS:
        return None
    return reading[0], (reading[1],)


def _read_each(site: Site, types: tuple[str, ...], body: bytes, *, depth: int) -> _Decoded | None:
    """Read the inner calls of a multicall, which the contract makes to itself in our name.

    One that cannot be read makes the whole unread. The outer call is listed too, so an allowlist must know both.
    """
    try:
        inner = abi.decode(types, body)[-1]
    except abi.NotCanonical:
        return None
    if depth >= _MAX_DEPTH or not isinstance(inner, list) or not inner:
        return None
    effects: tuple[Effect, ...] = ()
    calls: tuple[Call, ...] = (site.call(),)
    for item in inner:
        data = item if isinstance(item, bytes) else b""
        found = _read(data, site.contract, site.chain_id, site.sender, depth=depth + 1)
        if found is None or len(effects) + len(found[0]) > MAX_EFFECTS:
            return None
        effects, calls = effects + found[0], calls + found[1]
    return effects, calls
