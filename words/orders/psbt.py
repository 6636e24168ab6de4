"""A PSBT taken apart: the coins it spends, what each output pays, its fee and size. Pure.

It is read here by itself and not taken from the service, so that what the service says of an order can be compared with
the order's own bytes. What is not a PSBT of version 0, or shows a coin by another transaction than it names, counts as
not to be decoded. The work is bounded by the length of the text.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from words.orders.bitcoin_addresses import address_of, kind_of

# As long as the service takes one.
_MOST_CHARACTERS: Final = 400_000
_MOST_COINS: Final = 100
_MAGIC: Final = b"psbt\xff"
_UNSIGNED, _VERSION = b"\x00", b"\xfb"
_PREVIOUS, _COIN = b"\x00", b"\x01"
# The least that signing adds to an input, in units of a quarter vbyte; of what is not known nothing.
_SIGNED: Final = {"p2wpkh": 107, "p2tr": 66, "p2sh": 4 * 23 + 107, "p2pkh": 4 * 106}
_WITNESS: Final = frozenset({"p2wpkh", "p2wsh", "p2tr", "p2sh"})


@dataclass(frozen=True)
class Paid:
    """So many satoshis to a script; `address` is None of data, and of what has none."""

    amount: int
    script: bytes
    address: str | None

    @property
    def data(self) -> bytes | None:
        """Bytes that an OP_RETURN writes into the chain; None of an output that pays."""
        if self.script[:1] != b"\x6a":
            return None
        pushed = self.script[1:]
        return pushed[1:] if pushed and pushed[0] == len(pushed) - 1 <= 75 else pushed


@dataclass(frozen=True)
class Spent:
    """The coin that an input spends; `coin` is None where the PSBT does not show it."""

    outpoint: str
    coin: Paid | None


@dataclass(frozen=True)
class Psbt:
    """A transaction that is to be signed, and what its PSBT shows beside it."""

    version: int
    lock_time: int
    inputs: tuple[Spent, ...]
    outputs: tuple[Paid, ...]
    unsigned_bytes: int

    @cached_property
    def fee(self) -> int | None:
        """Amount by which the inputs exceed the outputs; None where not every coin is shown."""
        coins = [one.coin.amount for one in self.inputs if one.coin]
        return sum(coins) - sum(one.amount for one in self.outputs) if len(coins) == len(self.inputs) else None

    @property
    def vbytes(self) -> int:
        """The least that it can weigh once it is signed."""
        kinds = [kind_of(one.coin.script) if one.coin else None for one in self.inputs]
        marker = 2 if any(kind in _WITNESS for kind in kinds) else 0
        return -(-(4 * self.unsigned_bytes + marker + sum(_SIGNED.get(kind or "", 0) for kind in kinds)) // 4)


def taken_apart(text: object, network: str) -> Psbt | None:
    """A PSBT in base64, with the addresses of a network; None where it cannot be decoded."""
    return _decode(text, network) if isinstance(text, str) and len(text) <= _MOST_CHARACTERS else None


@lru_cache(maxsize=8)
def _decode(text: str, network: str) -> Psbt | None:
    try:
        raw = base64.b64decode(text, validate=True)
        # Spare bits would be a second spelling of the same bytes.
        return _psbt(_Bytes(raw), network) if base64.b64encode(raw).decode() == text else None
    except (binascii.Error, ValueError):
        return None


class _Bytes:
    """Bytes that are read once, from the front; ValueError where they end too early."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, 0

    def take(self, count: int) -> bytes:
        if count > len(self._raw) - self._at:
            raise ValueError("it ends too early")
        self._at += count
        return self._raw[self._at - count : self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def size(self) -> int:
        """A length, in its shortest form."""
        first = self.number(1)
        if first < 0xFD:
            return first
        width = {0xFD: 2, 0xFE: 4, 0xFF: 8}[first]
        number = self.number(width)
        if number < (0xFD if width == 2 else 1 << 4 * width):
            raise ValueError("a length that could be shorter")
        return number

    def take_sized(self) -> bytes:
        return self.take(self.size())

    def end(self) -> None:
        if self._at != len(self._raw):
            raise ValueError("something stands behind its end")

    @property
    def behind(self) -> int:
        """Number of bytes read."""
        return self._at


def _psbt(raw: _Bytes, network: str) -> Psbt:
    if raw.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("not a PSBT")
    fields = _map(raw)
    if fields.get(_VERSION, bytes(4)) != bytes(4) or _UNSIGNED not in fields:
        raise ValueError("not of version 0")
    unsigned = fields[_UNSIGNED]
    transaction = _Bytes(unsigned)
    version = transaction.number(4)
    outpoints = [_unsigned_input(transaction) for _ in range(_count(transaction))]
    outputs = tuple(_output(transaction, network) for _ in range(_count(transaction)))
    lock_time = transaction.number(4)
    transaction.end()
    inputs = tuple(
        Spent(f"{txid[::-1].hex()}:{index}", _coin(_map(raw), txid, index, network)) for txid, index in outpoints
    )
    for _ in outputs:
        _map(raw)
    raw.end()
    if len(set(outpoints)) != len(outpoints):
        raise ValueError("one coin twice")
    return Psbt(version, lock_time, inputs, outputs, len(unsigned))


def _map(raw: _Bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while key := raw.take_sized():
        if key in found:
            raise ValueError("a field twice")
        found[key] = raw.take_sized()
    return found


def _count(raw: _Bytes) -> int:
    count = raw.size()
    if not 1 <= count <= _MOST_COINS:
        raise ValueError("no input or output, or too many")
    return count


def _unsigned_input(raw: _Bytes) -> tuple[bytes, int]:
    outpoint = raw.take(32), raw.number(4)
    if raw.take_sized():
        raise ValueError("signed already")
    raw.take(4)
    return outpoint


def _output(raw: _Bytes, network: str) -> Paid:
    amount, script = raw.number(8), raw.take_sized()
    return Paid(amount, script, address_of(script, network))


def _coin(fields: dict[bytes, bytes], txid: bytes, index: int, network: str) -> Paid | None:
    """Read the coin of an input from the transaction that made it, else as the PSBT claims it, which the fee is signed
    with."""
    claimed = None
    if _COIN in fields:
        raw = _Bytes(fields[_COIN])
        claimed = _output(raw, network)
        raw.end()
    if _PREVIOUS not in fields:
        return claimed
    made, coin = _previous(fields[_PREVIOUS], index, network)
    if made != txid or coin is None or claimed not in (None, coin):
        raise ValueError("a coin of another transaction")
    return coin


def _previous(content: bytes, wanted: int, network: str) -> tuple[bytes, Paid | None]:
    """The id of a whole transaction, and one of its outputs."""
    raw = _Bytes(content)
    raw.take(4)
    has_witnesses = content[4:6] == b"\x00\x01"
    begin = len(raw.take(2)) + 4 if has_witnesses else 4
    inputs = raw.size()
    for _ in range(inputs):
        raw.take(36)
        raw.take_sized()
        raw.take(4)
    coin = None
    for place in range(raw.size()):
        amount, script = raw.number(8), raw.take_sized()
        if place == wanted:
            coin = Paid(amount, script, address_of(script, network))
    end = raw.behind
    if has_witnesses:
        for _ in range(inputs):
            for _ in range(raw.size()):
                raw.take_sized()
    lock_time = raw.take(4)
    raw.end()
    plain = content[:4] + content[begin:end] + lock_time
    return hashlib.sha256(hashlib.sha256(plain).digest()).digest(), coin
