"""What a replacement pays: more than the transaction it replaces, and no more than the chain's caps. Decisions 10.

Nodes take a replacement only if both fees are at least a tenth higher. What is replaced is read from the bytes that
this service signed, whose signature proves them, and never from the row beside them.
"""

import msgspec

from custody.chains.evm.transaction import EvmTransaction
from custody.chains.table import Chain
from custody.kit.errors import Invalid
from signer.draft import FeeAboveCap


class FeeTooLow(Invalid):
    """A replacement must pay at least a tenth more than the transaction it replaces."""


class Replaced(msgspec.Struct, frozen=True):
    """A signed transaction that is stuck, and who signed it."""

    tx_id: str
    transaction: EvmTransaction
    sender: str


def raised(name: str, before: int, asked: str | None, suggested: int, cap: int) -> int:
    """A fee that nodes take in place of `before`: the caller's, or the larger of the suggested one and 9/8 of it."""
    least = max(-(-before * 11 // 10), before + 1)
    if asked is not None:
        if int(asked) < least:
            raise FeeTooLow(f"{name} {asked} is too low to replace {before}; it must be at least {least}.")
        if int(asked) > cap:
            raise FeeAboveCap(f"{name} {asked} is above the cap of {cap}.")
        return int(asked)
    if least > cap:
        raise FeeAboveCap(f"Replacing {name} {before} takes at least {least}, above the cap of {cap}.")
    return min(max(suggested, -(-before * 9 // 8), least), cap)


def raised_fees(
    replaced: EvmTransaction, asked: tuple[str | None, str | None], suggested: tuple[int, int, int], chain: Chain
) -> tuple[int, int, int]:
    """Gas limit, fee and priority fee of a replacement. `suggested`: the same three, by a node."""
    gas_limit = max(replaced.gas_limit, suggested[0])
    cap = min(chain.max_fee_per_gas, chain.max_fee_per_transaction // gas_limit)
    max_fee = raised("maxFeePerGas", replaced.max_fee, asked[0], suggested[1], cap)
    if replaced.legacy:
        return gas_limit, max_fee, 0
    tip_cap = min(chain.max_priority_fee_per_gas, max_fee)
    return gas_limit, max_fee, raised("maxPriorityFeePerGas", replaced.priority_fee, asked[1], suggested[2], tip_cap)
