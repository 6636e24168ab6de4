"""The transaction of a finished PSBT, read from its bytes alone (BIP-174, the extractor)."""

from collections.abc import Sequence

import msgspec

from custody.chains.bitcoin.hashes import hash256
from custody.chains.bitcoin.psbt import MAX_FIELDS, MAX_INPUTS, frame, read_bytes, size_of, write
from custody.chains.bitcoin.types import FinalTransaction, Psbt


class Extracted(msgspec.Struct, frozen=True):
    """A transaction that can be sent, and what it pays as fee."""

    final: FinalTransaction
    fee: int


def extract(raw: bytes) -> Extracted | None:
    """The transaction of a PSBT that was finished here; None of one that lacks a signature."""
    # Signing adds at most two fields to an input, also where no more would have been read of a caller.
    psbt = read_bytes(raw, MAX_FIELDS + 2 * MAX_INPUTS)
    if not all(one.final_script or one.final_witness for one in psbt.inputs):
        return None
    coins = [one.previous[1] if one.previous is not None else one.witness_utxo for one in psbt.inputs]
    fee = sum(coin.amount for coin in coins if coin is not None) - sum(one.amount for one in psbt.transaction.outputs)
    return Extracted(whole(psbt, [(one.final_script or b"", one.final_witness or b"") for one in psbt.inputs]), fee)


def whole(psbt: Psbt, ended: Sequence[tuple[bytes, bytes]]) -> FinalTransaction:
    """The transaction of a PSBT, with the scriptSig and the serialised witness of each of its inputs."""
    unsigned, transaction = psbt.unsigned, psbt.transaction
    inputs = b"".join(
        one.outpoint.txid
        + one.outpoint.index.to_bytes(4, "little")
        + frame(script)
        + one.sequence.to_bytes(4, "little")
        for one, (script, _) in zip(transaction.inputs, ended, strict=True)
    )
    # Between the inputs and the lock time nothing changes.
    outputs = unsigned[4 + len(size_of(len(transaction.inputs))) + 41 * len(transaction.inputs) : -4]
    body = size_of(len(transaction.inputs)) + inputs + outputs
    witnesses = b"".join(witness or b"\x00" for _, witness in ended)
    has_witness = any(witness for _, witness in ended)
    plain = unsigned[:4] + body + unsigned[-4:]
    raw = unsigned[:4] + b"\x00\x01" + body + witnesses + unsigned[-4:] if has_witness else plain
    weight = 3 * len(plain) + len(raw)
    return FinalTransaction(write(psbt), raw, hash256(plain)[::-1].hex(), -(-weight // 4))
