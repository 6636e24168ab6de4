"""Finishing a transaction whose every input is ours and signed (BIP-174, the finalizer and the extractor)."""

from typing import Final

import msgspec

from custody.chains.bitcoin.extract import whole
from custody.chains.bitcoin.psbt import (
    IN_FINAL_SCRIPT,
    IN_FINAL_WITNESS,
    IN_PREVIOUS,
    IN_WITNESS_UTXO,
    frame,
)
from custody.chains.bitcoin.scripts import redeem_script_of
from custody.chains.bitcoin.types import FinalTransaction, OwnInput, Psbt, PsbtInput, SignedPsbt, Spend

# What is kept of an input beside its final fields, and every field of no known type.
_KEPT: Final = frozenset((IN_PREVIOUS, IN_WITNESS_UTXO))
_KNOWN: Final = frozenset((*range(0x00, 0x0E), *range(0x13, 0x19)))


def finalise(signed: SignedPsbt, spend: Spend) -> FinalTransaction | None:
    """The whole transaction, or None unless every input is ours and was signed."""
    if len(spend.own) != len(spend.coins) or not all(one.signed for one in spend.own):
        return None
    ended = [_final_fields(spend, *pair) for pair in zip(spend.own, signed.signatures, strict=True)]
    psbt = Psbt(
        spend.psbt.transaction,
        spend.psbt.unsigned,
        signed.psbt.pairs,
        tuple(_clear(one, *end) for one, end in zip(signed.psbt.inputs, ended, strict=True)),
        signed.psbt.outputs,
    )
    return whole(psbt, ended)


def _final_fields(spend: Spend, one: OwnInput, signature: bytes) -> tuple[bytes, bytes]:
    """The scriptSig of an input, and its witness as it is serialised, empty where there is none."""
    public_key = one.key.public_key
    match spend.scope.address_type:
        case "p2tr":
            return b"", b"\x01" + frame(signature)
        case "p2pkh":
            return frame(signature) + frame(public_key), b""
        case "p2wpkh":
            return b"", b"\x02" + frame(signature) + frame(public_key)
        case _:
            return frame(redeem_script_of(public_key)), b"\x02" + frame(signature) + frame(public_key)


def _clear(one: PsbtInput, script: bytes, witness: bytes) -> PsbtInput:
    """The input with its final fields, and without what only signing needed."""
    pairs = [pair for pair in one.pairs if pair[0][0] in _KEPT or pair[0][0] not in _KNOWN]
    if script:
        pairs.append((bytes((IN_FINAL_SCRIPT,)), script))
    if witness:
        pairs.append((bytes((IN_FINAL_WITNESS,)), witness))
    return msgspec.structs.replace(one, pairs=tuple(sorted(pairs)))
