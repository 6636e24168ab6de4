"""What signing an order would come to right now: a node and the signer are asked as for signing. Decisions 10."""

from typing import Any

import msgspec

from custody.chains.evm.rpc import InsufficientFunds, NotExecutable
from custody.chains.orders import EvmQuestion, Question, SolanaQuestion
from custody.foresight.types import Need, Simulated
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import Simulate
from custody.signing.prepare import Preparation
from custody.signing.request import prepared_evm, prepared_solana


async def simulate(ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, question: Question) -> Simulated:
    """The decision, and what it rests on; nothing is written. Fails where signing would fail without a decision."""
    preparation = await _prepare(ports, ref, question)
    message = Simulate(ref.agent, question, preparation.evm, preparation.solana)
    said = await asked(ports.signer, message, caller)
    if said["needsNode"] and not _missing(preparation):
        # The node expects it to fail: signing would say the same, with the same reason.
        raise preparation.problem  # type: ignore[misc]
    shown = {name: said[name] for name in ("decision", "results", "effects", "fee", "budgets")}
    return msgspec.convert(shown | {"needed": _needed(said, preparation)}, Simulated)


async def _prepare(ports: Ports, ref: AgentRef, question: Question) -> Preparation:
    if isinstance(question, EvmQuestion):
        return await prepared_evm(ports, ref, question.request)
    if isinstance(question, SolanaQuestion):
        return await prepared_solana(ports, question.request)
    return Preparation()


def _needed(said: dict[str, Any], preparation: Preparation) -> list[Need]:
    """A refusal needs nothing: nothing helps."""
    if said["decision"] == "refuse":
        return []
    needed: list[Need] = ["approval"] if said["decision"] == "queue" else []
    missing = _missing(preparation)
    return [*needed, missing] if missing == "funds" or (missing and said["broadcast"]) else needed


def _missing(preparation: Preparation) -> Need | None:
    """What a node told us, or that none did."""
    if isinstance(preparation.problem, InsufficientFunds):
        return "funds"
    return None if preparation.problem is None or isinstance(preparation.problem, NotExecutable) else "rpc"
