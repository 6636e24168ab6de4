"""The transactions that a batch of calls becomes: one for each call, in its order.

A chain knows nothing of the batch: one that reverts stops none of the others.
"""

from custody.chains.evm.action_orders import CallsOrder
from custody.chains.evm.orders import EvmOrder
from custody.chains.evm.transfers import ReferenceRequired, SponsorshipUnavailable
from custody.kit.errors import Invalid

# Of all calls together, in hex: every order of a batch is read and signed in one turn.
MAX_CALLDATA = 262_144


class EmptyCall(Invalid):
    """A call does nothing: give it a value, or calldata."""


class CallsTooLong(Invalid):
    """The calldata of a batch has at most 262,144 characters in all; send fewer calls."""


def transactions(order: CallsOrder) -> tuple[EvmOrder, ...]:
    """The transactions, without nonces; or what is wrong with the batch by itself."""
    if order.sponsor:
        raise SponsorshipUnavailable
    if order.broadcast and order.reference_id is None:
        raise ReferenceRequired(
            "referenceId is required for a batch that is broadcast, so that a retry cannot repeat it."
        )
    if sum(len(call.data or "") for call in order.calls) > MAX_CALLDATA:
        raise CallsTooLong
    for number, call in enumerate(order.calls, start=1):
        if call.value == "0" and (call.data or "0x") in {"", "0x"}:
            raise EmptyCall(f"Call {number} does nothing: give it a value, or calldata.", position=number)
    return tuple(
        EvmOrder(
            to=call.to,
            value=call.value,
            data=call.data,
            chain_id=order.chain_id,
            broadcast=order.broadcast,
            gas_limit=call.gas_limit,
            reference_id=order.reference_id,
        )
        for call in order.calls
    )
