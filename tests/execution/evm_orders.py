"""Orders on the EVM chain: good ones, calls in calls, and what can be done to the bytes of either."""

from collections.abc import Callable
from typing import Any

import msgspec
from eth_abi import encode as encode_abi

from tests.execution.contracts import call, contracts_by_name, types_of
from tests.execution.draws import Draws
from tests.execution.evm_world import (
    AGENT,
    CONTRACTS,
    FUNGIBLE,
    MULTI,
    MULTICALL3,
    NFT,
    NFTS,
    PEOPLE,
    PERMIT2,
    PLAIN,
    ROUTER,
    SAFE,
    TOKEN,
    VAULT,
    WALLET,
    WRAPPED,
    ZERO,
    raw,
)

_EVER = 2**48 - 1
_AMOUNTS = (0, 1, 3, 5, 5, 8, 20, 50, 100, 2**128 - 1, 2**128, 2**160 - 1, 2**256 - 1)
_PARTIES = (*PEOPLE, *PEOPLE, *PEOPLE, AGENT, ROUTER, WALLET, SAFE, PERMIT2, VAULT)
_WORD = 32


class Order(msgspec.Struct, frozen=True):
    """A transaction to ask for. `narrow` are the words of its calldata that hold less than a word."""

    to: str
    value: int
    data: bytes
    narrow: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"to {CONTRACTS.get(self.to, self.to)}, value {self.value}, data 0x{self.data.hex()}"


def _call(contract: str, signature: str, *values: Any, value: int = 0) -> Order:
    kinds = types_of(signature)
    narrow = tuple(index for index, kind in enumerate(kinds) if kind in ("address", "bool", "uint160", "uint48"))
    return Order(contract, value, call(CONTRACTS[contract], signature, *values), narrow)


# ---- good ones


def draw_order(draws: Draws, depth: int = 0) -> Order:
    """One order; at the top also one that has others inside."""
    if depth < 2 and draws.chance(22):
        return draws.one(_WRAPPERS)(draws, depth)
    return draws.one(_PLAIN)(draws)


def _coins(draws: Draws) -> Order:
    return Order(draws.one((*_PARTIES, WRAPPED, MULTICALL3)), draws.one((0, 1, 5, 8, 50)), b"")


def _fungible(draws: Draws) -> Order:
    contract = draws.one((TOKEN, TOKEN, PLAIN, VAULT, WRAPPED))
    amount, party = draws.one(_AMOUNTS), draws.one(_PARTIES)
    match draws.below(4):
        case 0 | 1:
            return _call(contract, "transfer(address,uint256)", party, amount)
        case 2:
            return _call(contract, "transferFrom(address,address,uint256)", AGENT, party, amount)
    return _call(contract, "approve(address,uint256)", party, amount)


def _token(draws: Draws) -> Order:
    amount, party = draws.one(_AMOUNTS), draws.one(_PARTIES)
    match draws.below(6):
        case 0:
            return _call(TOKEN, "increaseAllowance(address,uint256)", party, amount)
        case 1:
            return _call(TOKEN, "decreaseAllowance(address,uint256)", draws.one((ROUTER, WALLET, party)), amount)
        case 2:
            return _call(TOKEN, "burn(uint256)", amount)
        case 3:
            return _call(TOKEN, "transferAndCall(address,uint256,bytes)", party, amount, b"")
        case 4:
            return _call(TOKEN, "send(address,uint256,bytes)", party, amount, b"note")
    return _call(TOKEN, "mint(address,uint256)", party, amount)


def _vault(draws: Draws) -> Order:
    amount, party = draws.one(_AMOUNTS), draws.one((*PEOPLE, AGENT))
    match draws.below(3):
        case 0:
            return _call(VAULT, "deposit(uint256,address)", amount, party)
        case 1:
            return _call(VAULT, "withdraw(uint256,address,address)", amount, party, AGENT)
    return _call(VAULT, "redeem(uint256,address,address)", amount, party, AGENT)


def _wrapping(draws: Draws) -> Order:
    amount, party = draws.one(_AMOUNTS[:9]), draws.one(_PARTIES)
    match draws.below(4):
        case 0:
            return _call(WRAPPED, "deposit()", value=amount)
        case 1:
            return _call(WRAPPED, "depositTo(address)", party, value=amount)
        case 2:
            return _call(WRAPPED, "withdraw(uint256)", amount)
    return _call(WRAPPED, "withdrawTo(address,uint256)", party, amount)


def _nft(draws: Draws) -> Order:
    number, party = draws.one(NFTS), draws.one(_PARTIES)
    match draws.below(7):
        case 0:
            return _call(NFT, "transferFrom(address,address,uint256)", AGENT, party, number)
        case 1:
            return _call(NFT, "safeTransferFrom(address,address,uint256)", AGENT, draws.one(PEOPLE), number)
        case 2:
            safe = "safeTransferFrom(address,address,uint256,bytes)"
            return _call(NFT, safe, AGENT, draws.one(PEOPLE), number, b"")
        case 3:
            return _call(NFT, "approve(address,uint256)", party, number)
        case 4:
            return _call(NFT, "burn(uint256)", number)
    return _call(NFT, "setApprovalForAll(address,bool)", party, draws.chance(70))


def _multi(draws: Draws) -> Order:
    number, amount, person = draws.one(NFTS), draws.one(_AMOUNTS[:9]), draws.one(PEOPLE)
    match draws.below(3):
        case 0:
            one = "safeTransferFrom(address,address,uint256,uint256,bytes)"
            return _call(MULTI, one, AGENT, person, number, amount, b"")
        case 1:
            several = "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"
            return _call(MULTI, several, AGENT, person, [number, 7], [amount, 1], b"")
    return _call(MULTI, "setApprovalForAll(address,bool)", draws.one(_PARTIES), draws.chance(70))


def _permit2(draws: Draws) -> Order:
    token, amount, party = draws.one((TOKEN, PLAIN)), draws.one(_AMOUNTS[:12]), draws.one(_PARTIES)
    match draws.below(4):
        case 0:
            approve = "approve(address,address,uint160,uint48)"
            return _call(PERMIT2, approve, token, party, amount, draws.one((0, _EVER)))
        case 1:
            return _call(PERMIT2, "transferFrom(address,address,uint160,address)", AGENT, party, amount, token)
        case 2:
            batch = "transferFrom((address,address,uint160,address)[])"
            return _call(PERMIT2, batch, [(AGENT, party, amount, token)] * (1 + draws.below(2)))
    return _call(PERMIT2, "lockdown((address,address)[])", [(TOKEN, ROUTER)])


def _router(draws: Draws) -> Order:
    token, amount, party = draws.one((TOKEN, PLAIN)), draws.one(_AMOUNTS[:9]), draws.one(_PARTIES)
    match draws.below(5):
        case 0:
            swap = "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)"
            return _call(ROUTER, swap, amount, 0, [token, draws.one((TOKEN, PLAIN))], party, _EVER)
        case 1:
            swap = "swapExactETHForTokens(uint256,address[],address,uint256)"
            return _call(ROUTER, swap, 0, [WRAPPED, token], party, _EVER, value=amount)
        case 2:
            return _call(ROUTER, "pay(address)", party, value=amount)
        case 3:
            return _call(ROUTER, "pull(address,address,uint256)", token, party, amount)
    return _call(ROUTER, "pullByPermit2(address,address,uint160)", token, party, amount)


def _pull(draws: Draws) -> Order:
    """A transfer that a contract other than us has to make: of our tokens, by an allowance."""
    token = draws.one((TOKEN, TOKEN, PLAIN))
    return _call(token, "transferFrom(address,address,uint256)", AGENT, draws.one(_PARTIES), draws.one(_AMOUNTS))


_PLAIN: tuple[Callable[[Draws], Order], ...] = (
    _coins,
    _fungible,
    _fungible,
    _fungible,
    _fungible,
    _token,
    _vault,
    _wrapping,
    _nft,
    _multi,
    _permit2,
    _router,
)

# ---- calls in calls


def _inside(draws: Draws, depth: int, to: str | None = None) -> list[Order]:
    """One to three calls, to one contract or to any."""
    found: list[Order] = []
    for _ in range(1 + draws.below(2) + draws.below(2)):
        one = draw_order(draws, depth + 1)
        while to is not None and one.to != to:
            one = draws.one(_OF[to])(draws)
        if draws.chance(15):
            one = draws.one(MUTATIONS)(draws, one)
        found.append(one)
    if draws.chance(8):
        found.append(Order(to or draws.one(FUNGIBLE), 0, draws.one((b"", b"\x12\x34", b"\x12\x34\x56\x78"))))
    return found


def _multicall(draws: Draws, depth: int) -> Order:
    to = draws.one((TOKEN, TOKEN, NFT, ROUTER))
    items = [one.data for one in _inside(draws, depth, to)]
    if to != NFT and draws.chance(30):
        return _call(to, "multicall(uint256,bytes[])", _EVER, items)
    return _call(to, "multicall(bytes[])", items, value=draws.one((0, 0, 5)) if to == ROUTER else 0)


def _aggregate(draws: Draws, depth: int) -> Order:
    inside = [draws.one((one, _pull(draws))) for one in _inside(draws, depth)]
    value = sum(one.value for one in inside)
    match draws.below(4):
        case 0:
            return _call(MULTICALL3, "aggregate((address,bytes)[])", [(one.to, one.data) for one in inside])
        case 1:
            calls = [(one.to, one.data) for one in inside]
            return _call(MULTICALL3, "tryAggregate(bool,(address,bytes)[])", draws.chance(50), calls)
        case 2:
            calls3 = [(one.to, draws.chance(50), one.data) for one in inside]
            return _call(MULTICALL3, "aggregate3((address,bool,bytes)[])", calls3)
    calls4 = [(one.to, draws.chance(50), one.value, one.data) for one in inside]
    return _call(MULTICALL3, "aggregate3Value((address,bool,uint256,bytes)[])", calls4, value=value)


def _execute(draws: Draws, depth: int) -> Order:
    inside = [draws.one((one, _pull(draws))) for one in _inside(draws, depth)]
    match draws.below(3):
        case 0:
            one = inside[0]
            return _call(WALLET, "execute(address,uint256,bytes)", one.to, one.value, one.data)
        case 1:
            calls = [(one.to, one.value, one.data) for one in inside]
            return _call(WALLET, "executeBatch((address,uint256,bytes)[])", calls)
    several = [one.to for one in inside], [one.value for one in inside], [one.data for one in inside]
    return _call(WALLET, "executeBatch(address[],uint256[],bytes[])", *several)


def _safe(draws: Draws, depth: int) -> Order:
    one = draws.one((draw_order(draws, depth + 1), _fungible(draws)))
    owner = raw(AGENT).rjust(_WORD, b"\0") + bytes(_WORD) + b"\1"
    executing = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"
    return _call(SAFE, executing, one.to, one.value, one.data, 0, 0, 0, 0, ZERO, ZERO, owner)


_WRAPPERS: tuple[Callable[[Draws, int], Order], ...] = (_multicall, _multicall, _aggregate, _execute, _safe)
_OF: dict[str, tuple[Callable[[Draws], Order], ...]] = {
    TOKEN: (_token, _pull, _fungible),
    NFT: (_nft,),
    ROUTER: (_router,),
}

# ---- what can be done to the bytes


def append(draws: Draws, order: Order) -> Order:
    """Bytes behind the arguments."""
    return _with(
        order,
        order.data + draws.one((b"\0", b"\1", bytes(31), bytes(_WORD), b"\xff" * 40, b"bc_b7k3\x07\0\x80\x21" * 2)),
    )


def cut(draws: Draws, order: Order) -> Order:
    """The last bytes gone."""
    return _with(order, order.data[: -1 - draws.below(33)])


def soil(draws: Draws, order: Order) -> Order:
    """Something in a part of a word that its type leaves empty."""
    if not order.narrow:
        return append(draws, order)
    place = 4 + _WORD * draws.one(order.narrow) + draws.below(12)
    data = bytearray(order.data)
    if place >= len(data):
        return append(draws, order)
    data[place] |= draws.one((1, 0x80, 0xFF))
    return _with(order, bytes(data))


def pay(draws: Draws, order: Order) -> Order:
    """Coins along."""
    return msgspec.structs.replace(order, value=order.value + draws.one((1, 5, 50)))


def _reorder(draws: Draws, order: Order) -> Order:
    words = [order.data[at : at + _WORD] for at in range(4, len(order.data), _WORD)]
    if len(words) < 2:
        return order
    first, second = draws.below(len(words)), draws.below(len(words))
    words[first], words[second] = words[second], words[first]
    return _with(order, order.data[:4] + b"".join(words))


def _rename(draws: Draws, order: Order) -> Order:
    """Another function of the same contract, with the same arguments."""
    if order.to not in CONTRACTS:
        return _with(order, b"\x12\x34\x56\x78")
    return _with(
        order, bytes.fromhex(draws.one(contracts_by_name()[CONTRACTS[order.to]].selectors())[2:]) + order.data[4:]
    )


def _flip(draws: Draws, order: Order) -> Order:
    if not order.data:
        return order
    data = bytearray(order.data)
    data[draws.below(len(data))] ^= 1 << draws.below(8)
    return _with(order, bytes(data))


def _redirect(draws: Draws, order: Order) -> Order:
    return msgspec.structs.replace(order, to=draws.one((*CONTRACTS, *PEOPLE)))


def nest(draws: Draws, order: Order) -> Order:
    """The same call, made by the contract to itself in our name."""
    if order.to not in (TOKEN, NFT, ROUTER):
        return append(draws, order)
    beside = [draws.one((b"\x12\x34\x56\x78", b"", b"\1"))] if draws.chance(15) else []
    return Order(order.to, order.value, call(CONTRACTS[order.to], "multicall(bytes[])", [order.data, *beside]))


def gap(draws: Draws, order: Order) -> Order:
    """The first dynamic argument a word further behind, where contracts read it all the same."""
    head = _DYNAMIC.get(order.data[:4])
    if head is None:
        return append(draws, order)
    size = 4 + _WORD * head[1]
    words = [int.from_bytes(order.data[place : place + _WORD]) for place in range(4, size, _WORD)]
    moved = [word + _WORD if head[0] <= index and word == _WORD * head[1] else word for index, word in enumerate(words)]
    if moved == words:
        return append(draws, order)
    filler = encode_abi(["uint256"], [draws.one((0, 1))])
    return _with(order, order.data[:4] + encode_abi(["uint256"] * head[1], moved) + filler + order.data[size:])


# Of functions with one dynamic argument: its place, and how many words the head has.
_DYNAMIC = {
    bytes.fromhex(contracts_by_name()[contract].functions[signature]): (place, len(types_of(signature)))
    for contract, signature, place in (
        ("Token", "multicall(bytes[])", 0),
        ("Token", "multicall(uint256,bytes[])", 1),
        ("Token", "transferAndCall(address,uint256,bytes)", 2),
        ("Multicall3", "aggregate((address,bytes)[])", 0),
        ("Multicall3", "aggregate3((address,bool,bytes)[])", 0),
        ("Multicall3", "aggregate3Value((address,bool,uint256,bytes)[])", 0),
        ("Wallet", "execute(address,uint256,bytes)", 2),
        ("Wallet", "executeBatch((address,uint256,bytes)[])", 0),
        ("Nft", "safeTransferFrom(address,address,uint256,bytes)", 3),
        ("Multi", "safeTransferFrom(address,address,uint256,uint256,bytes)", 4),
    )
}


def _with(order: Order, data: bytes) -> Order:
    return msgspec.structs.replace(order, data=data)


# Those that keep what the order does and add to it: none may be judged more leniently.
ADDING = (append, append, soil, pay, nest)
MUTATIONS = (*ADDING, gap, cut, _reorder, _rename, _rename, _flip, _redirect)
