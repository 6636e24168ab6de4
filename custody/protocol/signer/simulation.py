"""A judgement of an order that is not carried out."""

from typing import Annotated, Any

import msgspec

from custody.chains.orders import Prepared, Question
from custody.identity.roles import READERS
from custody.kit.described import described
from custody.kit.shapes import AgentId
from custody.policies.types import Decision, Result, Window
from custody.protocol.command import AGENT, TENANT, Command, command, refuses
from custody.protocol.signer.orders import ORDER


class Fee(msgspec.Struct, frozen=True):
    """The highest possible network fee, in the smallest unit."""

    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    max: Annotated[str, described("The most it can cost, in the smallest unit.")]


class Remaining(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and its current remainder, from the ledger that enforces it."""

    policy_id: Annotated[str, described("The rule that sets the limit.")]
    window: Annotated[Window, described("The span that the limit counts: rolling 24 hours, or rolling 7 days.")]
    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    limit: Annotated[str, described("The limit in the smallest unit.")]
    spent: Annotated[str, described("Amount spent of it.")]
    remaining: Annotated[str, described("Amount left.")]


class Foreseen(msgspec.Struct, frozen=True):
    """The verdict on a simulated order. `needs_node`: it would be signed once a node said its nonce and fees."""

    decision: Decision
    results: list[Result]
    effects: list[dict[str, Any]]
    fee: Fee | None
    budgets: list[Remaining]
    broadcast: bool
    needs_node: bool


@command("signer", proofs=TENANT | AGENT, roles=READERS, repeatable=True)
@refuses(*ORDER)
class Simulate(Command[Foreseen], frozen=True):
    """Judge an order and tell the verdict; nothing is written, no key is opened."""

    agent: AgentId
    question: Question
    prepared: Prepared | None = None
