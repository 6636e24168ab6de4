"""Signing with an agent's wallets. Spec 1/4.3."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa, agent_token
from custody.chains.orders import EvmOrder, SolanaOrder, TypedDataOrder
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.errors import Frozen, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.signing import request
from custody.signing.types import EvmSigned, Pending, PolicyRefused, SolanaSigned, TypedDataSigned

routes = Routes("/vault", tag="Signing")
UNDECIDED = {202: Pending, 403: PolicyRefused, 429: PolicyRefused}


@routes.post(
    "/<agent>/sign",
    who=agent_token | admin_mfa("vaultSigning"),
    returns={200: EvmSigned, **UNDECIDED},
    fails=(UpstreamFailed, Frozen),
    private=True,
    queues=True,
)
async def sign(ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: EvmOrder) -> Any:
    """Sign an EVM transaction, queue it for approval, or refuse it.

    The agent's policies decide. Hard policies come first; the auto-approve threshold only queues.
    """
    return await request.evm(ports, caller, agent, body)


@routes.post(
    "/<agent>/sign-typed-data",
    who=agent_token | admin_mfa("vaultSigning"),
    returns={200: TypedDataSigned, **UNDECIDED},
    fails=(Frozen,),
    private=True,
    queues=True,
)
async def sign_typed_data(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: TypedDataOrder
) -> Any:
    """Sign an EIP-712 document (eth_signTypedData_v4), queue it, or refuse it.

    Permits, orders and authorizations are judged as what they move or allow.
    """
    return await request.typed_data(ports, caller, agent, body)


@routes.post(
    "/<agent>/sign-solana",
    who=agent_token | admin_mfa("vaultSigning"),
    returns={200: SolanaSigned, **UNDECIDED},
    fails=(UpstreamFailed, Frozen),
    private=True,
    queues=True,
)
async def sign_solana(ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: SolanaOrder) -> Any:
    """Sign a Solana transaction, queue it, or refuse it.

    Every instruction is recognised or the request is refused; `to` and `value` must equal what the bytes do.
    """
    return await request.solana(ports, caller, agent, body)
