"""The rules of relay by nodes: the fee, the kinds and amounts of outputs, and the size, by Bitcoin Core's arithmetic.

All of it is counted by the smallest size that the transaction can have, so what is refused no such node would relay.
"""

from typing import Final

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.refusals import FeeAboveCap, PsbtFee, PsbtNonstandardOutput
from custody.chains.bitcoin.scripts import is_witness, kind_of, pushes_alone
from custody.chains.bitcoin.types import Spend, TxOut

_MAX_WEIGHT: Final = 400_000
# Without witnesses: from here on it can't be taken for a node of a tree of hashes.
_MIN_SIZE: Final = 65
_SCRIPT_SIG: Final = {"p2sh-p2wpkh": 23, "p2pkh": 106}
# Each signature that a transaction may have checked counts as so many units of weight; a bare multisig as twenty.
_PER_SIGOP: Final = 20
_SIGOPS: Final = {"p2pkh": 4, "p2pk": 4, "multisig": 4 * 20}


def check_outputs(spend: Spend, bounds: Bounds) -> None:
    """Raise PsbtNonstandardOutput where an output, or the size of all, is not relayed."""
    data = []
    for place, output in enumerate(spend.psbt.transaction.outputs):
        match kind_of(output.script):
            case None:
                raise PsbtNonstandardOutput(
                    f"psbtBase64: output {place} pays a script of no kind that nodes relay; pay an address, a bare "
                    "key, or a bare multisig of at most 3 keys."
                )
            case "op_return" if output.amount:
                raise PsbtNonstandardOutput(
                    f"psbtBase64: output {place} burns {output.amount} sat in an OP_RETURN; its amount must be 0."
                )
            case "op_return":
                data.append(output)
            case _ if output.amount < (least := dust(output, bounds)):
                raise PsbtNonstandardOutput(
                    f"psbtBase64: output {place} of {output.amount} sat is dust; nodes relay its kind from {least} sat."
                )
    size = sum(len(output.script) for output in data)
    if len(data) > bounds.op_return_outputs or size > bounds.op_return_bytes:
        raise PsbtNonstandardOutput(
            f"psbtBase64: {len(data)} OP_RETURN outputs with {size} bytes of script in all; this deployment signs at "
            f"most {bounds.op_return_outputs} with {bounds.op_return_bytes}."
        )
    if not all(pushes_alone(output.script) for output in data):
        raise PsbtNonstandardOutput("psbtBase64: an OP_RETURN has other opcodes behind it than whole pushes of data.")
    stripped = len(spend.psbt.unsigned) + len(spend.own) * _SCRIPT_SIG.get(spend.scope.address_type, 0)
    if spend.weight > _MAX_WEIGHT or stripped < _MIN_SIZE:
        raise PsbtNonstandardOutput(
            f"psbtBase64: the transaction has {stripped} bytes without witnesses, and a weight of {spend.weight} at "
            f"least; nodes relay from {_MIN_SIZE} bytes to a weight of {_MAX_WEIGHT}. Pay more in it, or less."
        )


def dust(output: TxOut, bounds: Bounds) -> int:
    """Below so many satoshis an output costs more to spend than it is worth."""
    spent = 32 + 4 + 1 + (107 // 4 if is_witness(output.script) else 107) + 4
    return _fee(8 + 1 + len(output.script) + spent, bounds.dust_per_kvbyte)


def check_fee(spend: Spend, bounds: Bounds) -> None:
    """Raise PsbtFee where the fee is below what is relayed, FeeAboveCap where it is above a cap."""
    fee, vsize = spend.fee, -(-spend.weight // 4)
    counted = -(-max(spend.weight, _PER_SIGOP * _sigops(spend)) // 4)
    if fee < (least := _fee(counted, bounds.relay_per_kvbyte)):
        raise PsbtFee(
            f"psbtBase64: the fee of {fee} sat is below the {least} sat that nodes relay {counted} vbytes from, at "
            f"{_a_vbyte(bounds.relay_per_kvbyte)} sat/vB; raise it, or ask the operator for another floor."
        )
    if fee > bounds.absolute:
        raise FeeAboveCap(f"psbtBase64: the fee of {fee} sat is above the cap of {bounds.absolute} sat.")
    if fee > bounds.per_vbyte * vsize:
        raise FeeAboveCap(
            f"psbtBase64: the fee of {fee} sat is above the cap of {bounds.per_vbyte} sat/vB ({vsize} vbytes)."
        )
    paid = sum(payment.amount for payment in spend.payments)
    if paid > bounds.share_above and fee * 100 > bounds.share_percent * paid:
        raise FeeAboveCap(
            f"psbtBase64: the fee of {fee} sat is above {bounds.share_percent} % of the {paid} sat that are paid."
        )


def _sigops(spend: Spend) -> int:
    """Count the checks of signatures, at least: of others' inputs nothing is known, so nothing is counted."""
    checked = sum(_SIGOPS.get(kind_of(output.script) or "", 0) for output in spend.psbt.transaction.outputs)
    own = len(spend.own) if spend.scope.address_type in ("p2wpkh", "p2sh-p2wpkh") else 0
    return checked + own


def _fee(vsize: int, per_kvbyte: int) -> int:
    return -(-vsize * per_kvbyte // 1_000)


def _a_vbyte(per_kvbyte: int) -> str:
    """A rate as people write it: 100 for 1,000 vbytes is 0.1."""
    whole, rest = divmod(per_kvbyte, 1_000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")
