"""The transaction that a transfer becomes: a plain payment, or a call of the token's `transfer(address,uint256)`.

What a token's code does then, nobody here knows: it may keep a part, or lie about its decimals. The bytes are what is
judged, in the token's smallest unit.
"""

from typing import Final

from custody.chains.actions import WalletAction
from custody.chains.evm.action_orders import EvmTransfer, TransferOrder
from custody.chains.evm.address import ZERO_ADDRESS, checksum, parse_address
from custody.chains.evm.transaction import ValueOutOfRange
from custody.kit.errors import Forbidden, Invalid
from custody.kit.shapes import MAX_UINT256

NATIVE: Final = "native"
TRANSFER: Final = "0xa9059cbb"


class AmountRequired(Invalid):
    """value is missing; it must be the amount in the smallest unit, as a decimal string."""


class TwoAmounts(Invalid):
    """value and amountWei are two names of one field and differ; send one of them."""


class BadToken(Invalid):
    """token must be `native`, or the address of an ERC-20 token; mixed case must be a correct EIP-55 checksum."""


class ReferenceRequired(Invalid):
    """referenceId is required for a transfer that is broadcast, so that a retry cannot pay twice."""


class SponsorshipUnavailable(Forbidden):
    """sponsor: nobody pays fees for others in this deployment; send the transfer without it."""


def transaction(order: TransferOrder) -> EvmTransfer:
    """The transaction of a transfer, in its one spelling; or what is wrong with the transfer by itself."""
    if order.sponsor:
        raise SponsorshipUnavailable
    if order.broadcast and order.reference_id is None:
        raise ReferenceRequired
    amount, to, token = _amount(order), parse_address(order.to), _token(order)
    action = WalletAction("transfer", checksum(to), str(amount), checksum(token) if token else None)
    if token == to:
        raise BadToken("token and to are the same address; tokens that are sent to their own contract are lost.")
    return EvmTransfer(
        to=action.token or action.recipient,
        value="0" if token else action.amount,
        data=f"{TRANSFER}{int(to, 16):064x}{amount:064x}" if token else None,
        chain_id=order.chain_id,
        broadcast=order.broadcast,
        reference_id=order.reference_id,
        action=action,
    )


def _amount(order: TransferOrder) -> int:
    given = {int(amount) for amount in (order.value, order.amount_wei) if amount is not None}
    if not given:
        raise AmountRequired(fields=["value"])
    if len(given) > 1:
        raise TwoAmounts(fields=["value", "amountWei"])
    amount = given.pop()
    if amount > MAX_UINT256:
        raise ValueOutOfRange
    return amount


def _token(order: TransferOrder) -> str | None:
    if order.token is None or order.token == NATIVE:
        return None
    try:
        token = parse_address(order.token)
    except Invalid as problem:
        raise BadToken(f"token: {problem.message}" if problem.message.startswith("The checksum") else None) from None
    if token == ZERO_ADDRESS:
        raise BadToken("token is the zero address, which is no contract; for the chain's own coin send `native`.")
    return token
