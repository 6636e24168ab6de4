"""From a caller's order to an answer. Spec 1/4.3; the path is told in docs/follow-a-request.md.

Once the signer was asked, the caller hanging up changes nothing: the story runs to its end.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from custody.agents import store as agents
from custody.agents.types import AgentAbsent
from custody.chains.orders import EvmOrder, SolanaOrder, TypedDataOrder
from custody.kit import ids, stages
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.client import Answered
from custody.protocol.messages import (
    NeedsPreparation,
    Queued,
    Refused,
    ReplaceEvm,
    Signed,
    SignEvm,
    Signing,
    SignSolana,
    SignTypedData,
)
from custody.signing import broadcast
from custody.signing.prepare import Preparation, prepare_evm, prepare_solana
from custody.signing.types import SigningResult, queued, refused, signed_evm, signed_solana, signed_typed_data
from custody.transactions import store as transactions

# An owner or admin may ask in an agent's place.
Asker = AgentCaller | SessionCaller


async def evm(ports: Ports, caller: Asker, ref: AgentRef, order: EvmOrder) -> SigningResult:
    """Sign an EVM transaction, and broadcast it if asked."""
    preparation = await prepared_evm(ports, ref, order)
    message = SignEvm(ref.agent, ids.new_uuid(), order, preparation.evm)
    return await unhurried(ask_signer(ports, caller, ref, message, preparation))


async def typed_data(ports: Ports, caller: Asker, ref: AgentRef, order: TypedDataOrder) -> SigningResult:
    """Sign an EIP-712 document."""
    return await unhurried(
        ask_signer(ports, caller, ref, SignTypedData(ref.agent, ids.new_uuid(), order), Preparation())
    )


async def solana(ports: Ports, caller: Asker, ref: AgentRef, order: SolanaOrder) -> SigningResult:
    """Sign a Solana transaction, and broadcast it if asked."""
    preparation = await prepared_solana(ports, order)
    message = SignSolana(ref.agent, ids.new_uuid(), order, preparation.solana)
    return await unhurried(ask_signer(ports, caller, ref, message, preparation))


async def prepared_evm(ports: Ports, ref: AgentRef, order: EvmOrder) -> Preparation:
    """What a node says of an EVM order of this agent."""
    chain = ports.chains.active if order.chain_id is None else ports.chains.find(order.chain_id)
    sender = await _sender(ports, ref) if chain and chain.rpc_urls else ""
    with stages.timed("prepare"):
        return await prepare_evm(ports, chain, sender, order)


async def prepared_solana(ports: Ports, order: SolanaOrder) -> Preparation:
    """What a node says before a Solana order."""
    with stages.timed("prepare"):
        return await prepare_solana(ports, ports.chains.find(order.chain_id))


async def _sender(ports: Ports, ref: AgentRef) -> str:
    try:
        return (await agents.get(ports.pool, ref)).wallet_addresses.evm
    except AgentAbsent:
        # Deleted a moment ago: what that makes of its token is the signer's word.
        return ""


async def unhurried[T](story: Coroutine[Any, Any, T]) -> T:
    """Run a story to its end even if whoever asked for it is gone."""
    task = asyncio.get_running_loop().create_task(story)
    # A fault of a story whose caller is gone would otherwise never be looked at.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def ask_signer(
    ports: Ports, caller: Asker, ref: AgentRef, message: Signing | ReplaceEvm, preparation: Preparation
) -> SigningResult:
    """Have an order judged and signed, and broadcast what was."""
    with stages.timed("signer"):
        answered = await ports.signer.ask(message, caller)
    outcome = answered.outcome
    if isinstance(outcome, NeedsPreparation):
        raise preparation.problem or UpstreamFailed
    if isinstance(outcome, Queued):
        return queued(answered, outcome)
    if isinstance(outcome, Refused):
        return refused(answered, outcome)
    assert isinstance(outcome, Signed)  # noqa: S101 - what is left
    return await _signed(ports, ref, answered, outcome)


async def _signed(ports: Ports, ref: AgentRef, answered: Answered, outcome: Signed) -> SigningResult:
    if outcome.kind == "typed_data":
        return signed_typed_data(answered, outcome)
    await send_if_asked(ports, ref, answered, outcome)
    if outcome.kind == "solana":
        return signed_solana(answered, outcome)
    return signed_evm(answered, outcome)


async def send_if_asked(ports: Ports, ref: AgentRef, answered: Answered, outcome: Signed) -> None:
    """Broadcast what was just signed; for an earlier answer only if it is still not sent."""
    if not outcome.broadcast:
        return
    if answered.replayed and (await transactions.get(ports.pool, ref, outcome.tx_id)).status != "signed":
        return
    with stages.timed("broadcast"):
        await broadcast.send(ports, ref.tenant, ports.chains.find(outcome.chain_id or 0), outcome)
