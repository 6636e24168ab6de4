"""Read back a transaction that was signed by us, from its bytes alone.

The inverse of `transaction.py`, and as strict: whatever has more than one spelling, or fields that we never write, is
refused. Whose signature it is comes from the bytes too, so nobody can put another payment beside an order's row.
"""

import msgspec
from coincurve import PublicKey

from custody.chains.evm.address import address_of, keccak256
from custody.chains.evm.signature import ORDER
from custody.chains.evm.transaction import EvmTransaction

_TYPE_2 = 2
_LEGACY_FIELDS, _DYNAMIC_FIELDS = 9, 12
_SHORT = 55


class NotOurs(ValueError):
    """The bytes are not a transaction as this service writes them."""


class SignedBefore(msgspec.Struct, frozen=True):
    """A transaction, who signed it, and its hash."""

    transaction: EvmTransaction
    sender: str
    hash: str


type _Item = bytes | list["_Item"]


def read(raw: bytes) -> SignedBefore:
    """The transaction in these bytes with the checksummed address of its signer, or NotOurs."""
    try:
        dynamic = raw[:1] == bytes((_TYPE_2,))
        fields = _fields(raw[1:] if dynamic else raw)
        return _dynamic(raw, fields) if dynamic else _legacy(raw, fields)
    except (IndexError, TypeError) as problem:
        raise NotOurs("not a transaction") from problem


def _dynamic(raw: bytes, fields: list[_Item]) -> SignedBefore:
    if len(fields) != _DYNAMIC_FIELDS or fields[8] != []:
        raise NotOurs("not a type 2 transaction in our form")
    chain_id, nonce, priority, max_fee, gas = (_integer(one) for one in fields[:5])
    parity, r, s = (_integer(one) for one in fields[9:])
    transaction = EvmTransaction(
        chain_id=chain_id,
        nonce=nonce,
        gas_limit=gas,
        max_fee=max_fee,
        priority_fee=priority,
        to=_address(fields[5]),
        value=_integer(fields[6]),
        data=_text(fields[7]),
    )
    signed_part = bytes((_TYPE_2,)) + _encode(fields[:9])
    return _whole(raw, bytes((_TYPE_2,)) + _encode(fields), transaction, _sender(signed_part, r, s, parity))


def _legacy(raw: bytes, fields: list[_Item]) -> SignedBefore:
    if len(fields) != _LEGACY_FIELDS:
        raise NotOurs("not a type 0 transaction in our form")
    nonce, price, gas = (_integer(one) for one in fields[:3])
    v, r, s = (_integer(one) for one in fields[6:])
    chain_id, parity = divmod(v - 35, 2)
    transaction = EvmTransaction(
        chain_id=chain_id,
        nonce=nonce,
        gas_limit=gas,
        max_fee=price,
        priority_fee=0,
        to=_address(fields[3]),
        value=_integer(fields[4]),
        data=_text(fields[5]),
        legacy=True,
    )
    protected = [*fields[:6], _bytes_of(chain_id), b"", b""]
    return _whole(raw, _encode(fields), transaction, _sender(_encode(protected), r, s, parity))


def _whole(raw: bytes, again: bytes, transaction: EvmTransaction, sender: str) -> SignedBefore:
    if raw != again or transaction.chain_id < 1:
        raise NotOurs("not in its canonical form")
    return SignedBefore(transaction, sender, "0x" + keccak256(raw).hex())


def _sender(signed_part: bytes, r: int, s: int, parity: int) -> str:
    if parity not in (0, 1) or not 0 < r < ORDER or not 0 < s <= ORDER // 2:
        raise NotOurs("not a signature")
    compact = r.to_bytes(32) + s.to_bytes(32) + bytes((parity,))
    try:
        key = PublicKey.from_signature_and_message(compact, keccak256(signed_part), hasher=None)
    except ValueError as problem:
        raise NotOurs("not a signature") from problem
    return address_of(key.format(compressed=False))


def _fields(raw: bytes) -> list[_Item]:
    item, end = _item(raw, 0)
    if end != len(raw) or not isinstance(item, list):
        raise NotOurs("not one list")
    return item


def _item(raw: bytes, at: int) -> tuple[_Item, int]:
    """One item of RLP and where it ends. Nothing here is deeper than an empty list in a list."""
    first = raw[at]
    if first < 0x80:
        return raw[at : at + 1], at + 1
    offset = 0x80 if first < 0xC0 else 0xC0
    begin = at + 1 + max(0, first - offset - _SHORT)
    size = first - offset if begin == at + 1 else int.from_bytes(raw[at + 1 : begin])
    end = begin + size
    if end > len(raw):
        raise NotOurs("cut off")
    if offset == 0x80:
        return raw[begin:end], end
    items: list[_Item] = []
    while begin < end:
        if raw[begin] >= 0xC0 and (at or raw[begin] > 0xC0):
            raise NotOurs("nested too deep")
        item, begin = _item(raw, begin)
        items.append(item)
    return items, end


def _encode(item: _Item) -> bytes:
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < 0x80 else _header(0x80, len(item)) + item
    content = b"".join(_encode(one) for one in item)
    return _header(0xC0, len(content)) + content


def _header(offset: int, size: int) -> bytes:
    if size <= _SHORT:
        return bytes((offset + size,))
    length = _bytes_of(size)
    return bytes((offset + _SHORT + len(length),)) + length


def _bytes_of(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def _integer(item: _Item) -> int:
    content = _text(item)
    if content[:1] == b"\0":
        raise NotOurs("a number with a leading zero")
    return int.from_bytes(content)


def _address(item: _Item) -> str:
    content = _text(item)
    if len(content) != 20:
        raise NotOurs("no recipient")
    return "0x" + content.hex()


def _text(item: _Item) -> bytes:
    if not isinstance(item, bytes):
        raise NotOurs("a list where bytes belong")
    return item
