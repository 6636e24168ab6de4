"""Replacing a transaction that is stuck."""

from api.areas.signing import replace
from api.areas.signing.answers import EvmSigned
from api.areas.signing.types import Decided
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import EVM, NODE
from custody.chains.evm.action_orders import ReplacementFees
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.orders import ReplaceEvm

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/transactions/<tx_id>/replace",
    who=asking(ReplaceEvm),
    fails=(*NODE, *EVM),
    private=True,
    queues=True,
)
async def replace_transaction(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, tx_id: str, body: ReplacementFees
) -> Answered[Decided[EvmSigned]]:
    """Sign a stuck EVM transaction again with the same nonce and higher fees.

    The payment stays the same. Today's policies judge it; it counts once towards limits, for its nonce.
    """
    return await replace.replace(ports, caller, agent, tx_id, body)
