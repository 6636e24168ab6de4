"""The effects of a contract call, read from its bytes.

Promise P6: judged on what the bytes do at most. What is read is counted; what is not read, or stands behind what was
read, is an `unread` effect of its own, which says where it is and how much. Router calls, wrapping, ownership and
upgrades are unread as a whole.
"""

import msgspec

from custody.chains.evm import abi
from custody.chains.evm.address import parse_address
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.evm.selectors import MAX_EFFECTS, READERS, Reading, Site
from custody.chains.evm.wrappers import WRAPPERS, Inner, take_apart
from custody.chains.types import Call, Effect

_SELECTOR = 4
_MAX_DEPTH = 3
# Where unread bytes are.
WHOLE, BEHIND, PADDING, COINS, ITSELF = (
    "all of the call",
    "behind the arguments",
    "in the padding of the arguments",
    "coins beside a call that takes none",
    "a call of itself",
)

type _Decoded = tuple[tuple[Effect, ...], tuple[Call, ...]]


def decode(order_to: str, value: int, data: bytes, chain_id: int, sender: str) -> _Decoded:
    """Say what a transaction does: its effects, and the calls an allowlist has to know.

    Native value that comes with a call is a transfer of its own without a call attached: a contract-allowlist
    vouches for what a call does, never for the coins sent along.
    """
    contract, us = parse_address(order_to), parse_address(sender)
    if not data:
        return (Effect("transfer", EVM_NATIVE, value, us, contract),), ()
    return _read(Site(chain_id, contract, _selector(data), us, value, (us,), data[_SELECTOR:]), data, depth=0)


def _selector(data: bytes) -> str:
    # Shorter data reaches the contract's fallback: it calls something, but names nothing.
    return "0x" + data[:_SELECTOR].hex() if len(data) >= _SELECTOR else "0x"


def _read(site: Site, data: bytes, *, depth: int) -> _Decoded:
    body = site.arguments
    try:
        taken = take_apart(site.selector, body)
        if taken is not None:
            return _read_each(site, *taken, depth=depth)
        known = READERS.get(site.selector)
        if known is None:
            return _unread(site, data)
        types, reader = known
        arguments = abi.decode(types, body)
        reading: Reading = reader(site, *arguments.values)
    except (abi.NotCanonical, ValueError):
        # Lists of unequal lengths too: a contract may move what the longer one has.
        return _unread(site, data, garbled=True)
    if reading is None or len(reading[0]) > MAX_EFFECTS:
        return _unread(site, data, garbled=reading is not None)
    effects, call = reading
    # None of the calls we read accepts coins, so with coins it may be a contract of another kind.
    along = (_rest(site, call, COINS),) if site.value else ()
    return (*_coins(site, site.value), *effects, *_besides(site, call, arguments), *along), (call,)


def _unread(site: Site, data: bytes, *, garbled: bool = False) -> _Decoded:
    apart = site.selector not in WRAPPERS
    call = msgspec.structs.replace(site.call(), decoded=False, apart=apart, garbled=garbled)
    return (*_coins(site, site.value), _rest(site, call, WHOLE, len(data))), (call,)


def _read_each(site: Site, inner: list[Inner], arguments: abi.Arguments, *, depth: int) -> _Decoded:
    """Read calls inside a call, each as if it stood alone. The outer one is listed too: an allowlist must know all."""
    if depth >= _MAX_DEPTH:
        raise abi.NotCanonical
    call = msgspec.structs.replace(site.call(), wraps=True)
    effects: tuple[Effect, ...] = _besides(site, call, arguments)
    calls: tuple[Call, ...] = (call,)
    # What the contract says that it hands on is counted once, where it goes; it is named as a receiver all the same.
    kept = max(0, site.value - sum(one.value for one in inner))
    coins = (Effect("transfer", EVM_NATIVE, kept, site.sender, site.contract),) if site.value else ()
    for one in inner:
        found = _read_one(site, one, depth=depth)
        effects, calls = effects + found[0], calls + found[1]
        if len(effects) > MAX_EFFECTS:
            raise abi.NotCanonical
    return (*coins, *effects), calls


def _read_one(outer: Site, one: Inner, *, depth: int) -> _Decoded:
    contract = one.target or outer.contract
    if not one.data and one.target is not None:
        return (Effect("transfer", EVM_NATIVE, one.value, outer.sender, contract),), ()
    us, selector, arguments = (outer.sender, outer.contract), _selector(one.data), one.data[_SELECTOR:]
    site = Site(outer.chain_id, contract, selector, outer.sender, one.value, us, arguments)
    effects, calls = _read(site, one.data, depth=depth + 1)
    # In its own name an account may do what it does for nobody else, such as change its owner.
    own = (_rest(site, calls[0], ITSELF),) if one.target == outer.contract else ()
    return (*effects, *own), calls


def _coins(site: Site, value: int) -> tuple[Effect, ...]:
    return (Effect("transfer", EVM_NATIVE, value, site.sender, site.contract),) if value else ()


def _besides(site: Site, call: Call, arguments: abi.Arguments) -> tuple[Effect, ...]:
    """The unread rest of a call whose arguments were read: a contract may take it into account all the same."""
    behind = (_rest(site, call, BEHIND, arguments.behind),) if arguments.behind else ()
    return (*behind, _rest(site, call, PADDING)) if arguments.dirty else behind


def _rest(site: Site, call: Call, where: str, size: int | None = None) -> Effect:
    return Effect("unread", None, 0, site.sender, site.contract, label=where, call=call, size=size)
