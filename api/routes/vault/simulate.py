"""The simulation of signing."""

from api.areas.signing.questions import QuestionBody, question_of
from api.areas.simulation.simulate import simulate
from api.areas.simulation.types import Simulated
from api.http.bodies import MAX_PSBT_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import EVM, MESSAGE, NODE, PSBT, SOLANA, TRANSFER, TYPED_DATA
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.simulation import Simulate

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/simulate",
    max_body=MAX_PSBT_BODY,
    who=asking(Simulate),
    fails=(*NODE, *EVM, *SOLANA, *TYPED_DATA, *MESSAGE, *TRANSFER, *PSBT),
    private=True,
)
async def simulate_order(
    ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, body: QuestionBody
) -> Simulated:
    """Simulate signing an order: what would happen now. Nothing is signed and nothing is written.

    Uses the same code as signing. An order that signing refuses before policy evaluation is refused here, too.
    An `Idempotency-Key` stores no response, because nothing is written: every request is evaluated again.
    """
    return await simulate(ports, caller, agent, question_of(body))
