"""The outcome of signing an order right now: a node and the signer are asked as for signing."""

from api.areas.signing.prepare import Preparation
from api.areas.signing.request import prepare_order
from api.areas.simulation.types import Need, Simulated
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.orders import Question
from custody.chains.rpc import InsufficientFunds, NotExecutable
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.simulation import Foreseen, Simulate


async def simulate(ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, question: Question) -> Simulated:
    """The decision, and what it rests on; nothing is written. Fails where signing would fail without a decision."""
    preparation = await prepare_order(ports, ref, question.request)
    said = (await ports.workers.ask(Simulate(ref.agent, question, preparation.prepared), caller)).answer
    if said.needs_node and not _missing(preparation):
        # The node expects it to fail, or may not be asked: signing would say the same, with the same reason.
        raise preparation.problem  # type: ignore[misc]
    needed = _needs(said, preparation)
    return Simulated(said.decision, said.results, said.effects, said.fee, said.budgets, needed)


def _needs(said: Foreseen, preparation: Preparation) -> list[Need]:
    """A refusal needs nothing: nothing helps."""
    if said.decision == "refuse":
        return []
    needed: list[Need] = ["approval"] if said.decision == "queue" else []
    missing = _missing(preparation)
    return [*needed, missing] if missing == "funds" or (missing and said.broadcast) else needed


def _missing(preparation: Preparation) -> Need | None:
    """Name what is lacking, by a node's answer or by the lack of one."""
    if isinstance(preparation.problem, InsufficientFunds):
        return "funds"
    # Of who may ask no more for now nothing is lacking: what needs a node is refused above.
    known = preparation.problem is None or isinstance(preparation.problem, NotExecutable | NodeCallsSpent)
    return None if known else "rpc"
