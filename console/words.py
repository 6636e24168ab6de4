"""What an order does, in words a person can decide by. Pure."""

from dataclasses import dataclass
from typing import Literal

from console.order import Known, Order

Tone = Literal["bad", "warn", "good", "quiet"]


@dataclass(frozen=True)
class Said:
    """One line; the tone only repeats in colour what the words say."""

    text: str
    tone: Tone | None = None


def essentials(order: Order, known: Known) -> list[Said]:
    """What must be read before deciding: who, what, how much, to whom, on which chain; what is dangerous first."""
    return [Said(f"{order.agent_name}: {effect.kind} {effect.amount} to {effect.to}") for effect in order.effects]


def summary(order: Order, known: Known) -> str:
    """The same in one short line, for a list."""
    return f"{order.kind} {order.value} to {order.to_address}"
