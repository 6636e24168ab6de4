"""Replacing a transaction that is stuck. Decisions 10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa, agent_token
from api.routes.vault.sign import UNDECIDED
from custody.chains.orders import ReplacementFees
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.errors import Conflict, Frozen, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.signing import replace
from custody.signing.types import EvmSigned
from custody.transactions.types import TransactionAbsent

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/transactions/<tx_id>/replace",
    who=agent_token | admin_mfa("vaultSigning"),
    returns={200: EvmSigned, **UNDECIDED},
    fails=(TransactionAbsent, Conflict, UpstreamFailed, Frozen),
    private=True,
    queues=True,
)
async def replace_transaction(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, tx_id: str, body: ReplacementFees
) -> Any:
    """Sign a stuck EVM transaction again with the same nonce and higher fees.

    The payment stays what it is. Policies judge it as they stand today; it counts once for its nonce.
    """
    return await replace.replace(ports, caller, agent, tx_id, body)
