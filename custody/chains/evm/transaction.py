"""Our own encoder of EVM transactions, types 0 and 2, byte-equal to eth-account.

A transaction is always built from fields; raw bytes are never taken in. No contract creation, no blobs, no
EIP-7702 authorizations: none of them can be written down here.
"""

import msgspec
from coincurve import PrivateKey

from custody.chains.evm.address import keccak256, parse_address
from custody.chains.evm.signature import sign_digest
from custody.kit.errors import Invalid
from custody.kit.shapes import MAX_UINT256

MAX_UINT64 = 2**64 - 1
_SHORT = 55
_ITSELF = 0x80  # a single byte below this is its own encoding
_EMPTY_LIST = b"\xc0"


class BadTransaction(Invalid):
    """A field of the transaction is out of its range."""


class ValueOutOfRange(Invalid):
    """value is larger than 2^256 - 1."""


class EvmTransaction(msgspec.Struct, frozen=True):
    """One transaction. `legacy` makes a type 0 one (EIP-155) whose gas price is `max_fee`; else it is type 2."""

    chain_id: int
    nonce: int
    gas_limit: int
    max_fee: int
    priority_fee: int
    to: str
    value: int
    data: bytes = b""
    legacy: bool = False


class SignedTransaction(msgspec.Struct, frozen=True):
    """The bytes a node takes, and the hash by which everyone will know them."""

    raw: bytes
    hash: str


def sign(transaction: EvmTransaction, key: PrivateKey) -> SignedTransaction:
    """Sign a transaction; the signature is verified before it is returned."""
    check(transaction)
    raw = _sign_legacy(transaction, key) if transaction.legacy else _sign_dynamic(transaction, key)
    return SignedTransaction(raw=raw, hash="0x" + keccak256(raw).hex())


def check(transaction: EvmTransaction) -> None:
    """Refuse what no chain takes, or what an encoder would silently turn into something else."""
    # A chain id of 0 would make a signature that is valid on every chain.
    _within(transaction.chain_id, "chainId", 1, MAX_UINT64)
    # EIP-2681: the highest nonce can never be used.
    _within(transaction.nonce, "nonce", 0, MAX_UINT64 - 1)
    _within(transaction.gas_limit, "gasLimit", 1, MAX_UINT64)
    _within(transaction.max_fee, "maxFeePerGas", 0, MAX_UINT256)
    _within(transaction.value, "value", 0, MAX_UINT256)
    if not transaction.legacy:
        _within(transaction.priority_fee, "maxPriorityFeePerGas", 0, transaction.max_fee)


def _within(number: int, field: str, lowest: int, highest: int) -> None:
    if not lowest <= number <= highest:
        raise BadTransaction(f"{field} must be between {lowest} and {highest}.")


def _sign_dynamic(transaction: EvmTransaction, key: PrivateKey) -> bytes:
    fields = (
        _integer(transaction.chain_id)
        + _integer(transaction.nonce)
        + _integer(transaction.priority_fee)
        + _integer(transaction.max_fee)
        + _shared_fields(transaction)
        + _EMPTY_LIST
    )
    signature = sign_digest(keccak256(b"\x02" + _list(fields)), key)
    return b"\x02" + _list(fields + _integer(signature.parity) + _integer(signature.r) + _integer(signature.s))


def _sign_legacy(transaction: EvmTransaction, key: PrivateKey) -> bytes:
    fields = _integer(transaction.nonce) + _integer(transaction.max_fee) + _shared_fields(transaction)
    signature = sign_digest(keccak256(_list(fields + _integer(transaction.chain_id) + b"\x80\x80")), key)
    v = transaction.chain_id * 2 + 35 + signature.parity
    return _list(fields + _integer(v) + _integer(signature.r) + _integer(signature.s))


def _shared_fields(transaction: EvmTransaction) -> bytes:
    recipient = b"\x94" + bytes.fromhex(parse_address(transaction.to)[2:])
    return _integer(transaction.gas_limit) + recipient + _integer(transaction.value) + _string(transaction.data)


def _integer(number: int) -> bytes:
    if 0 < number < _ITSELF:
        return bytes((number,))
    size = (number.bit_length() + 7) // 8
    return bytes((0x80 + size,)) + number.to_bytes(size)


def _string(content: bytes) -> bytes:
    if len(content) == 1 and content[0] < _ITSELF:
        return content
    return _header(0x80, len(content)) + content


def _list(content: bytes) -> bytes:
    return _header(0xC0, len(content)) + content


def _header(offset: int, size: int) -> bytes:
    if size <= _SHORT:
        return bytes((offset + size,))
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((offset + _SHORT + len(length),)) + length
