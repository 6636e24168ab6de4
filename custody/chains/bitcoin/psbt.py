"""PSBTs of version 0 (BIP-174, BIP-371), read strictly: one spelling, every known field of its right length.

What is not read here is never signed; what no rule needs passes through untouched. The work is bounded: by the length
of the text, and by the numbers of fields and of outputs that are walked.
"""

import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from custody.chains.bitcoin.bounds import MAX_MONEY
from custody.chains.bitcoin.hashes import hash256
from custody.chains.bitcoin.refusals import PsbtMalformed
from custody.chains.bitcoin.types import (
    Derivation,
    OutPoint,
    Pairs,
    Psbt,
    PsbtInput,
    PsbtOutput,
    Transaction,
    TxIn,
    TxOut,
)

_MAGIC: Final = b"psbt\xff"
# Of a transaction that is signed here.
MAX_INPUTS: Final = 100
MAX_OUTPUTS: Final = 100
# Fields of all maps, and inputs, outputs and witness items of all previous transactions, which are walked one by one.
MAX_FIELDS: Final = 8_192
MAX_WALKED: Final = 16_384

GLOBAL_UNSIGNED: Final = 0x00
_GLOBAL_XPUB, _GLOBAL_VERSION = 0x01, 0xFB
IN_PREVIOUS, IN_WITNESS_UTXO, IN_PARTIAL, IN_SIGHASH, IN_REDEEM, IN_WITNESS_SCRIPT = range(6)
IN_DERIVATION, IN_FINAL_SCRIPT, IN_FINAL_WITNESS = 0x06, 0x07, 0x08
IN_TAP_SIGNATURE, _IN_TAP_SCRIPT_SIGNATURE, _IN_TAP_LEAF, IN_TAP_DERIVATION = 0x13, 0x14, 0x15, 0x16
IN_TAP_KEY, IN_TAP_ROOT = 0x17, 0x18
_OUT_DERIVATION, _OUT_TAP_DERIVATION = 0x02, 0x07
# Fields of version 2 (BIP-370): readers that know them believe them instead of the transaction.
_OF_VERSION_2: Final = {
    "global": frozenset(range(0x02, 0x07)),
    "input": frozenset(range(0x0E, 0x13)),
    "output": frozenset((0x03, 0x04)),
}
_NO_PSBT: Final = "this is a raw transaction; make a PSBT of it, with the transactions that made its coins."
_ANY: Final = range(2**20)
_PATH: Final = range(4, 4 + 4 * 256, 4)
# Of each known field: how long what follows its type may be, and its value.
type _Lengths = Mapping[int, tuple[Any, Any]]
_GLOBAL: Final[_Lengths] = {GLOBAL_UNSIGNED: ((0,), _ANY), _GLOBAL_XPUB: ((78,), _PATH), _GLOBAL_VERSION: ((0,), (4,))}
_INPUT: Final[_Lengths] = {
    IN_PREVIOUS: ((0,), _ANY),
    IN_WITNESS_UTXO: ((0,), _ANY),
    IN_PARTIAL: ((33, 65), range(9, 74)),
    IN_SIGHASH: ((0,), (4,)),
    IN_REDEEM: ((0,), _ANY),
    IN_WITNESS_SCRIPT: ((0,), _ANY),
    IN_DERIVATION: ((33, 65), _PATH),
    IN_FINAL_SCRIPT: ((0,), _ANY),
    IN_FINAL_WITNESS: ((0,), _ANY),
    0x09: ((0,), _ANY),
    0x0A: ((20,), _ANY),
    0x0B: ((32,), _ANY),
    0x0C: ((20,), _ANY),
    0x0D: ((32,), _ANY),
    IN_TAP_SIGNATURE: ((0,), (64, 65)),
    _IN_TAP_SCRIPT_SIGNATURE: ((64,), (64, 65)),
    _IN_TAP_LEAF: (range(33, 33 + 32 * 129, 32), range(1, 2**20)),
    IN_TAP_DERIVATION: ((32,), range(5, 2**20)),
    IN_TAP_KEY: ((0,), (32,)),
    IN_TAP_ROOT: ((0,), (32,)),
}
_OUTPUT: Final[_Lengths] = {
    0x00: ((0,), _ANY),
    0x01: ((0,), _ANY),
    _OUT_DERIVATION: ((33, 65), _PATH),
    0x05: ((0,), (32,)),
    0x06: ((0,), _ANY),
    _OUT_TAP_DERIVATION: ((32,), range(5, 2**20)),
}


class _Reader:
    """Bytes, a place in them, and what may still be walked."""

    def __init__(self, raw: bytes, where: str, budget: list[int]) -> None:
        self.raw, self.at, self.where, self.budget = raw, 0, where, budget

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.raw):
            raise self.wrong("ends too early")
        taken = self.raw[self.at : end]
        self.at = end
        return taken

    def size(self) -> int:
        """A compact size in its shortest form."""
        first = self.take(1)[0]
        if first < 0xFD:
            return first
        width = {0xFD: 2, 0xFE: 4, 0xFF: 8}[first]
        number = int.from_bytes(self.take(width), "little")
        if number < (0xFD, 0x1_0000, 0x1_0000_0000)[width.bit_length() - 2]:
            raise self.wrong("has a length that is not in its shortest form")
        return number

    def bytes(self) -> bytes:
        return self.take(self.size())

    def many(self) -> int:
        """Read how many of something follow, each of which is walked."""
        count = self.size()
        self.budget[0] -= count
        if self.budget[0] < 0:
            raise self.wrong(
                f"has more than {MAX_WALKED} inputs, outputs and witness items in its previous transactions"
            )
        return count

    def end(self) -> None:
        if self.at != len(self.raw):
            raise self.wrong("has bytes behind its end")

    def wrong(self, what: str) -> PsbtMalformed:
        return PsbtMalformed(f"psbtBase64: {self.where} {what}.")


def read(text: str) -> Psbt:
    """A PSBT from base64 in its one spelling; PsbtMalformed says where it is wrong."""
    # Much hex is base64 too, of other bytes.
    if mistaken := _explain(text.strip()):
        raise PsbtMalformed(f"psbtBase64: {mistaken}")
    try:
        raw = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        raw = b""
    if not raw or binascii.b2a_base64(raw, newline=False).decode() != text:
        raise PsbtMalformed("psbtBase64: must be standard base64 with padding, without spaces or line ends.")
    return read_bytes(raw)


def read_bytes(raw: bytes, most_fields: int = MAX_FIELDS) -> Psbt:
    """The same from its bytes."""
    if not raw.startswith(_MAGIC):
        raise PsbtMalformed(
            f"psbtBase64: {_NO_PSBT if _is_transaction(raw) else _explain(raw) or 'this is no PSBT.'} A PSBT begins "
            "with the bytes 70736274ff, in base64 with cHNidP."
        )
    reader = _Reader(raw, "the PSBT", [MAX_WALKED])
    reader.take(len(_MAGIC))
    left = [most_fields]
    pairs = _map(reader, "the global map", _GLOBAL, left)
    found = dict(pairs)
    version, unsigned = (found.get(bytes((kind,))) for kind in (_GLOBAL_VERSION, GLOBAL_UNSIGNED))
    # Before its fields: those of version 2 are in no PSBT of version 0, and the cure for one of version 2 is another.
    if version not in (None, bytes(4)):
        number = int.from_bytes(version or b"", "little")
        raise PsbtMalformed(f"psbtBase64: is of version {number}; only version 0 is signed here, so convert it.")
    if unsigned is None:
        raise PsbtMalformed("psbtBase64: has no unsigned transaction, which every PSBT of version 0 has.")
    _check_version(reader, "global", pairs)
    transaction = _read_unsigned(unsigned)
    inputs = tuple(_input(reader, place, one.outpoint.index, left) for place, one in enumerate(transaction.inputs))
    outputs = tuple(_output(reader, place, left) for place in range(len(transaction.outputs)))
    reader.where = "the PSBT"
    reader.end()
    return Psbt(transaction, unsigned, pairs, inputs, outputs)


def write(psbt: Psbt) -> bytes:
    """Its bytes; of one that was read, those that were read."""
    maps = (psbt.pairs, *(one.pairs for one in psbt.inputs), *(one.pairs for one in psbt.outputs))
    return _MAGIC + b"".join(b"".join(frame(key) + frame(value) for key, value in pairs) + b"\x00" for pairs in maps)


def _explain(text: str | bytes) -> str | None:
    """Explain a PSBT or transaction in hex, and a PSBT that was encoded twice; None for any other text."""
    if text[:6] == b"cHNidP":
        return "this is a PSBT that was encoded in base64 twice; decode it once."
    try:
        raw = binascii.a2b_hex(text)
    except ValueError:
        return None
    if raw.startswith(_MAGIC):
        return "this is a PSBT in hex; psbtBase64 takes base64 of the same bytes."
    return _NO_PSBT if _is_transaction(raw) else None


def _is_transaction(raw: bytes) -> bool:
    try:
        _previous(raw, 0, "", [MAX_WALKED])
    except PsbtMalformed:
        return False
    return True


def frame(content: bytes) -> bytes:
    """Bytes behind their length."""
    return size_of(len(content)) + content


def size_of(number: int) -> bytes:
    """A compact size in its shortest form."""
    if number < 0xFD:
        return bytes((number,))
    if number < 0x1_0000:
        return b"\xfd" + number.to_bytes(2, "little")
    return b"\xfe" + number.to_bytes(4, "little")


def _map(reader: _Reader, where: str, lengths: _Lengths, left: list[int]) -> Pairs:
    reader.where = where
    pairs: list[tuple[bytes, bytes]] = []
    seen: set[bytes] = set()
    while size := reader.size():
        key = reader.take(size)
        value = reader.bytes()
        left[0] -= 1
        if left[0] < 0:
            raise reader.wrong(
                f"has the field number {MAX_FIELDS + 1} of this PSBT, and more than {MAX_FIELDS} are not read"
            )
        if key in seen:
            raise reader.wrong(f"has the field {key[:8].hex()} twice")
        seen.add(key)
        if (known := lengths.get(key[0])) is not None:
            if size - 1 not in known[0]:
                raise reader.wrong(f"has the field {key[0]:02x} with a key of {size} bytes")
            if len(value) not in known[1]:
                raise reader.wrong(f"has the field {key[0]:02x} with a value of {len(value)} bytes")
        pairs.append((key, value))
    return tuple(pairs)


def _check_version(reader: _Reader, kind: str, pairs: Pairs) -> None:
    for key, _ in pairs:
        if key[0] in _OF_VERSION_2[kind]:
            raise reader.wrong(f"has the field {key[0]:02x}, which is of version 2; leave it out of one of version 0")


def _read_unsigned(raw: bytes) -> Transaction:
    """The transaction that will be signed: not in witness form, and nothing in its scripts yet."""
    reader = _Reader(raw, "the unsigned transaction", [MAX_WALKED])
    version = _number("<i", reader)
    if not 1 <= (count := reader.size()) <= MAX_INPUTS:
        raise reader.wrong(f"must have 1 to {MAX_INPUTS} inputs, and no witnesses")
    inputs = []
    for place in range(count):
        outpoint = OutPoint(reader.take(32), _number("<I", reader))
        if reader.bytes():
            raise reader.wrong(f"has a scriptSig at input {place}; it must be empty")
        inputs.append(TxIn(outpoint, _number("<I", reader)))
    if len({one.outpoint for one in inputs}) != count:
        raise reader.wrong("spends one coin twice")
    if not 1 <= (count := reader.size()) <= MAX_OUTPUTS:
        raise reader.wrong(f"must have 1 to {MAX_OUTPUTS} outputs")
    outputs = tuple(_txout(reader) for _ in range(count))
    if sum(one.amount for one in outputs) > MAX_MONEY:
        raise reader.wrong("pays more than there can ever be")
    lock_time = _number("<I", reader)
    reader.end()
    return Transaction(version, tuple(inputs), outputs, lock_time)


def _number(form: str, reader: _Reader) -> int:
    value: int = struct.unpack(form, reader.take(4))[0]
    return value


def _txout(reader: _Reader) -> TxOut:
    amount = int.from_bytes(reader.take(8), "little")
    if amount > MAX_MONEY:
        raise reader.wrong("has an output of more than there can ever be")
    return TxOut(amount, reader.bytes())


def _previous(raw: bytes, wanted: int, where: str, budget: list[int]) -> tuple[bytes, TxOut | None]:
    """The id of a whole transaction, and the output that is wanted of it; None where it has fewer."""
    reader = _Reader(raw, f"the previous transaction of {where}", budget)
    reader.take(4)
    witnesses = raw[4:6] == b"\x00\x01"
    if witnesses:
        reader.take(2)
    begins = reader.at
    if not (inputs := reader.many()):
        raise reader.wrong("has no inputs")
    for _ in range(inputs):
        reader.take(36)
        reader.bytes()
        reader.take(4)
    found = None
    for place in range(reader.many()):
        output = _txout(reader)
        if place == wanted:
            found = output
    ends = reader.at
    if witnesses:
        for _ in range(inputs):
            for _ in range(reader.many()):
                reader.bytes()
    lock_time = reader.take(4)
    reader.end()
    return hash256(raw[:4] + raw[begins:ends] + lock_time), found


def _input(reader: _Reader, place: int, wanted: int, left: list[int]) -> PsbtInput:
    where = f"input {place}"
    pairs = _map(reader, where, _INPUT, left)
    _check_version(reader, "input", pairs)
    found = dict(pairs)

    def one(kind: int) -> bytes | None:
        return found.get(bytes((kind,)))

    previous, coin, sighash = one(IN_PREVIOUS), one(IN_WITNESS_UTXO), one(IN_SIGHASH)
    return PsbtInput(
        pairs=pairs,
        previous=None if previous is None else _previous(previous, wanted, where, reader.budget),
        witness_utxo=None if coin is None else _coin(coin, where),
        sighash=None if sighash is None else int.from_bytes(sighash, "little"),
        redeem_script=one(IN_REDEEM),
        witness_script=one(IN_WITNESS_SCRIPT),
        partial_signatures=tuple((key[1:], value) for key, value in pairs if key[0] == IN_PARTIAL),
        derivations=_derivations(pairs, IN_DERIVATION, _derivation),
        final_script=one(IN_FINAL_SCRIPT),
        final_witness=one(IN_FINAL_WITNESS),
        tap_signature=one(IN_TAP_SIGNATURE),
        tap_internal_key=one(IN_TAP_KEY),
        tap_merkle_root=one(IN_TAP_ROOT),
        tap_leaves=any(key[0] in (_IN_TAP_LEAF, _IN_TAP_SCRIPT_SIGNATURE) for key, _ in pairs),
        tap_derivations=_derivations(pairs, IN_TAP_DERIVATION, _tap_derivation),
    )


def _output(reader: _Reader, place: int, left: list[int]) -> PsbtOutput:
    pairs = _map(reader, f"output {place}", _OUTPUT, left)
    _check_version(reader, "output", pairs)
    plain = _derivations(pairs, _OUT_DERIVATION, _derivation)
    return PsbtOutput(pairs=pairs, derivations=plain + _derivations(pairs, _OUT_TAP_DERIVATION, _tap_derivation))


def _coin(raw: bytes, where: str) -> TxOut:
    reader = _Reader(raw, f"the witness UTXO of {where}", [0])
    coin = _txout(reader)
    reader.end()
    return coin


def _derivations(pairs: Pairs, kind: int, read_one: Callable[[bytes, bytes], Derivation]) -> tuple[Derivation, ...]:
    return tuple(read_one(key[1:], value) for key, value in pairs if key[0] == kind)


def _derivation(public_key: bytes, value: bytes) -> Derivation:
    return Derivation(public_key, value[:4], struct.unpack(f"<{len(value) // 4 - 1}I", value[4:]))


def _tap_derivation(public_key: bytes, value: bytes) -> Derivation:
    reader = _Reader(value, "a taproot derivation", [0])
    reader.take(32 * min(reader.size(), len(value)))
    rest = reader.take(len(value) - reader.at)
    if len(rest) not in _PATH:
        raise reader.wrong(f"has a path of {len(rest)} bytes")
    return _derivation(public_key, rest)
