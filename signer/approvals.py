"""A person's decision over a queued order: approve is the sign path again, deny is one write. Spec 1/4.6, 4.7."""

from datetime import timedelta
from typing import Any

import msgspec

from custody.chains.orders import EvmOrder, SolanaOrder, TypedDataOrder, stored_evm
from custody.kit import clock
from custody.kit.errors import Conflict, NotFound, Unavailable
from custody.kit.refs import AgentRef
from custody.protocol.messages import Approve, Deny, Done, Outcome
from signer import orders, replace
from signer.case import Case, Claim
from signer.context import Ask, Signer
from signer.decide import Busy, Unclaimed, settle
from signer.idempotency import packed
from signer.proofs import ProvenSession, ProvenTenant
from signer.record import APPROVAL_MAC, approval_content
from signer.turns import TooManyWaiting

_READ = "SELECT * FROM approval_read($1, $2, $3, $4)"
_DENY = "SELECT deny_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
_KINDS: dict[str, type[TypedDataOrder | SolanaOrder]] = {"typed_data": TypedDataOrder, "solana": SolanaOrder}


class ApprovalAbsent(NotFound):
    """There is no such approval."""


class ApprovalResolved(Conflict):
    """This approval was already decided."""


class ApprovalExpired(Conflict):
    """This approval has expired; the agent must ask again."""


class ApprovalChanged(Conflict):
    """The order is not the one you saw: its digest differs. Look at it again before you decide."""


async def approve(signer: Signer, message: Approve, ask: Ask[ProvenTenant]) -> tuple[Outcome, bool]:
    """Judge the order again by today's policy and spend, sign it and claim the approval, all in one write.

    When today's hard rules refuse, nothing is written and the item stays pending.
    """
    row = await _pending(signer, ask.caller, message)
    order = _order(row)
    prepared = message.evm if row["kind"] == "evm" else message.solana
    replaced = await replace.stored(signer, AgentRef(ask.caller.tenant, row["agent_id"]), order, str(row["tx_id"]))
    draft = orders.draft(order, prepared, signer.chains, approving=True, replaced=replaced)
    _check_order(signer, ask.caller.tenant, row, draft.digest)
    # Compared with what will be signed, not with a column beside it.
    if message.digest not in (None, draft.digest.hex()) or message.approval_id not in (None, str(row["id"])):
        raise ApprovalChanged
    age = clock.now() - row["requested_at"]
    claim = Claim(
        str(row["id"]), counted_this_hour=age < timedelta(minutes=59), counted_today=age < timedelta(hours=23)
    )
    ref = AgentRef(ask.caller.tenant, row["agent_id"])
    try:
        case = Case(ref=ref, tx_id=str(row["tx_id"]), draft=draft, ask=ask, claim=claim)
        return await settle(signer, ref, lambda: case)
    except Unclaimed:
        # Somebody else was faster: say what became of it.
        await _pending(signer, ask.caller, message)
        raise ApprovalExpired from None


def _order(row: Any) -> EvmOrder | TypedDataOrder | SolanaOrder:
    kind, text = row["kind"], row["order_text"]
    return stored_evm(text) if kind == "evm" else msgspec.json.decode(text, type=_KINDS[kind])


def _check_order(signer: Signer, tenant: str, row: Any, digest: bytes) -> None:
    """The stored order must be the one that was queued: a database writer cannot swap what a person approves."""
    content = approval_content(
        tenant, row["agent_id"], str(row["incarnation"]), str(row["tx_id"]), str(row["id"]), digest
    )
    signer.sealer.check_mac(row["mac"], APPROVAL_MAC, tenant, content)


async def deny(signer: Signer, message: Deny, ask: Ask[ProvenTenant]) -> Outcome:
    """Reject the order; it can never be signed afterwards."""
    caller = ask.caller
    row = await _pending(signer, caller, message)
    resolved = clock.now()
    shown = {"approvalId": str(row["id"]), "txId": str(row["tx_id"]), "status": "rejected"}
    outcome = Done(shown | {"resolvedAt": clock.iso(resolved), "resolvedBy": "manual"})
    try:
        async with signer.turns.turn_of(caller.tenant, row["agent_id"]), signer.pool.acquire() as connection:
            result = await connection.fetchval(
                _DENY, caller.tenant, row["agent_id"], row["id"], row["digest"], message.reason, caller.standing,
                caller.principal, *ask.key_row, packed(outcome), "system", caller.principal,
                _metadata(row, message.reason), ask.origin_row, _denied_event(row, message.reason), resolved,
                caller.user if isinstance(caller, ProvenSession) else None,
            )  # fmt: skip
    except TooManyWaiting:
        raise Busy from None
    if result == "unclaimed":
        # Somebody else was faster: say what became of it.
        await _pending(signer, caller, message)
        raise ApprovalExpired
    if result != "done":
        raise Unavailable
    return outcome


async def _pending(signer: Signer, caller: ProvenTenant, message: Approve | Deny) -> Any:
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, caller.tenant, message.approval_id, message.tx_id, message.agent)
    if row is None:
        raise ApprovalAbsent
    if row["status"] == "expired" or (row["status"] == "pending" and row["expired"]):
        raise ApprovalExpired
    if row["status"] != "pending":
        raise ApprovalResolved(f"This approval was already {row['status']}.")
    if message.digest is not None and message.digest != row["digest"].hex():
        raise ApprovalChanged
    return row


def _metadata(row: Any, reason: str | None) -> str:
    data = {"agentId": row["agent_id"], "approvalId": str(row["id"]), "digest": row["digest"].hex(), "reason": reason}
    return msgspec.json.encode(data).decode()


def _denied_event(row: Any, reason: str | None) -> str:
    order: dict[str, Any] = msgspec.json.decode(row["order_text"])
    data = {
        "approvalId": str(row["id"]), "txId": str(row["tx_id"]), "to": order.get("to"),
        "value": order["value"] if isinstance(order.get("value"), str) else None,
        "chainId": order.get("chainId"), "reason": reason, "resolvedBy": "manual",
    }  # fmt: skip
    return msgspec.json.encode([{"event": "tx.denied", "data": data}]).decode()
