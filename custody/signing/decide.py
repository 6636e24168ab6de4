"""A person decides over a queued order. Spec 1/4.6, 4.7, decisions 4 (approving)."""

from typing import Any

import msgspec

from custody.agents import store as agents
from custody.approvals import store
from custody.approvals.types import ApproveBody, Approved, ApprovedTransaction, Denied, DenyBody, RejectedTransaction
from custody.chains.orders import SolanaOrder, stored_evm
from custody.kit.callers import TenantCaller
from custody.kit.errors import NotFound, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.client import Replayed, asked
from custody.protocol.messages import Approve, Deny, NeedsPreparation, Refused, Signed
from custody.signing.prepare import Preparation, prepare_evm, prepare_solana
from custody.signing.request import send_if_asked, unhurried
from custody.signing.types import refused


class ApprovalAbsent(NotFound):
    """There is no such approval."""


async def approve(ports: Ports, caller: TenantCaller, approval_id: str, body: ApproveBody) -> Any:
    """Approve by the item's id."""
    asked_for = await store.find_asked(ports.pool, caller.tenant, approval_id=approval_id)
    message = Approve(approval_id=approval_id, digest=body.digest)
    return await unhurried(_approve(ports, caller, asked_for, message, _as_approval))


async def approve_transaction(ports: Ports, caller: TenantCaller, ref: AgentRef, tx_id: str, body: ApproveBody) -> Any:
    """Approve by the agent's transaction."""
    asked_for = await store.find_asked(ports.pool, caller.tenant, tx_id=tx_id, agent=ref.agent)
    message = Approve(agent=ref.agent, tx_id=tx_id, digest=body.digest)
    return await unhurried(_approve(ports, caller, asked_for, message, _as_transaction))


async def deny(ports: Ports, caller: TenantCaller, approval_id: str, body: DenyBody) -> Any:
    """Deny by the item's id."""
    data = await asked(ports.signer, Deny(approval_id=approval_id, digest=body.digest, reason=body.reason), caller)
    return data.replayed_or(Denied(data["approvalId"], data["status"], data["resolvedAt"], data["resolvedBy"]))


async def reject_transaction(ports: Ports, caller: TenantCaller, ref: AgentRef, tx_id: str, body: DenyBody) -> Any:
    """Deny by the agent's transaction."""
    data = await asked(ports.signer, Deny(agent=ref.agent, tx_id=tx_id, digest=body.digest, reason=body.reason), caller)
    return data.replayed_or(
        RejectedTransaction(data["txId"], data["approvalId"], data["status"], data["resolvedAt"], data["resolvedBy"])
    )


async def _approve(
    ports: Ports, caller: TenantCaller, asked_for: store.Asked | None, message: Approve, shown: Any
) -> Any:
    if asked_for is None:
        raise ApprovalAbsent
    preparation = await _prepare(ports, asked_for)
    message = msgspec.structs.replace(message, evm=preparation.evm, solana=preparation.solana)
    answered = await ports.signer.ask(message, caller)
    outcome = answered.outcome
    if isinstance(outcome, NeedsPreparation):
        raise preparation.problem or UpstreamFailed
    if isinstance(outcome, Refused):
        return refused(answered, outcome)
    assert isinstance(outcome, Signed)  # noqa: S101 - what is left
    await send_if_asked(ports, asked_for.agent, answered, outcome)
    return Replayed(shown(outcome)) if answered.replayed else shown(outcome)


async def _prepare(ports: Ports, asked_for: store.Asked) -> Preparation:
    """Prepared afresh: what a node said when the order was queued may be hours old."""
    if asked_for.kind == "evm":
        order = stored_evm(asked_for.order_text)
        chain = ports.chains.active if order.chain_id is None else ports.chains.find(order.chain_id)
        agent = await agents.get(ports.pool, asked_for.agent)
        return await prepare_evm(ports, chain, agent.wallet_addresses.evm, order)
    if asked_for.kind == "solana":
        return await prepare_solana(
            ports, ports.chains.find(msgspec.json.decode(asked_for.order_text, type=SolanaOrder).chain_id)
        )
    return Preparation()


def _as_approval(outcome: Signed) -> Approved:
    return Approved(outcome.approval_id or "", "approved", outcome.tx_hash, outcome.resolved_at or "")


def _as_transaction(outcome: Signed) -> ApprovedTransaction:
    return ApprovedTransaction(outcome.tx_id, outcome.tx_hash)
