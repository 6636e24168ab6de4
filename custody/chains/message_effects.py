"""A message as rules judge it: one effect that nobody can read."""

from typing import Final

from custody.chains.families import of_name
from custody.chains.message_orders import MessageOrder
from custody.chains.message_reading import MessageNotOurs, read
from custody.chains.messages import Message
from custody.chains.types import Effect, Subject

# A domain of any length would make a notice of any length.
_TOLD: Final = 253


def read_order(order: MessageOrder) -> Message:
    """The message of an order, or BadMessage."""
    return read(family_of(order), order.message, order.raw)


def subject_of(order: MessageOrder, message: Message, address: str, chain_id: int | None, caip2: str | None) -> Subject:
    """Build the subject that a rule judges; MessageNotOurs for a sign-in by another address.

    The chain is that of the sign-in message. A signature of any other message is good on every chain, whatever its
    order says.
    """
    family, said = family_of(order), message.sign_in
    us = of_name(family).spell(address)
    label = "bytes" if message.text is None else "message"
    if said is not None:
        # Many sites write the address of an EVM wallet in lower case.
        if said.family != family or said.address not in (address, us):
            raise MessageNotOurs(fields=["message" if order.raw is None else "raw"])
        label = f"sign-in: {said.domain[:_TOLD]}"
    effect = Effect("unread", None, 0, us, unknown=True, label=label, size=len(message.raw))
    return Subject(family, "message", chain_id, caip2, None, (effect,), message=message)


def family_of(order: MessageOrder) -> str:
    """The family whose wallet signs it."""
    return str(order.__struct_config__.tag)
