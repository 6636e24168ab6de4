"""What must not be missed before approving, one line each. Pure."""

from console.orders.order import Known, Order
from console.orders.parties import as_far
from console.orders.phrases import unlimited
from console.orders.words import never_paid
from console.texts.said import Said


def dangers(order: Order, known: Known) -> list[Said]:
    """The gravest first; empty for a payment to somebody who was paid before."""
    said = []
    if any(unlimited(effect) for effect in order.effects):
        said.append(Said("! UNLIMITED: whoever is allowed this can take all there is of it, now and later.", "bad"))
    if any(effect.kind == "opaque" for effect in order.effects):
        said.append(Said("! Nobody could decode all of this: it may do more than what is said here.", "bad"))
    if never_paid(order, known):
        said.append(
            Said(
                "! First time: this agent has never before paid this destination or let it spend, as this order "
                f"does{as_far(known)}.",
                "warn",
            )
        )
    elif known.past is None:
        said.append(Said("! Whether this destination was paid before is not known yet.", "warn"))
    if known.doubt:
        said.append(Said(f"! {known.doubt}", "warn"))
    return said
