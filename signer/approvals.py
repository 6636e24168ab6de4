"""A person's decision over a queued order: approve is the sign path again, deny is one write. Spec 1/4.6, 4.7."""

from datetime import timedelta
from typing import Any

import msgspec

from custody.chains.orders import EvmOrder, SolanaOrder, TypedDataOrder
from custody.kit import clock
from custody.kit.callers import IdempotencyKey, Origin
from custody.kit.errors import Conflict, NotFound, Unavailable
from custody.kit.refs import AgentRef
from custody.protocol.messages import Approve, Deny, Done, Outcome
from signer import orders
from signer.context import Signer
from signer.decide import Case, Claim, settle
from signer.idempotency import earlier, packed
from signer.proofs import ProvenTenant

_READ = "SELECT * FROM approval_read($1, $2, $3, $4)"
_DENY = "SELECT deny_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
_KINDS: dict[str, type[EvmOrder | TypedDataOrder | SolanaOrder]] = {
    "evm": EvmOrder, "typed_data": TypedDataOrder, "solana": SolanaOrder,
}  # fmt: skip


class ApprovalAbsent(NotFound):
    """There is no such approval."""


class ApprovalResolved(Conflict):
    """This approval was already decided."""


class ApprovalExpired(Conflict):
    """This approval has expired; the agent must ask again."""


class ApprovalChanged(Conflict):
    """The order is not the one you saw: its digest differs. Look at it again before you decide."""


async def approve(
    signer: Signer, message: Approve, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Judge the order again by today's policy and spend, sign it and claim the approval, all in one write.

    When today's hard rules refuse, nothing is written and the item stays pending.
    """
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    row = await _pending(signer, caller, message)
    order = msgspec.json.decode(row["order_text"], type=_KINDS[row["kind"]])
    prepared = message.evm if row["kind"] == "evm" else message.solana
    draft = orders.draft(order, prepared, signer.chains, approving=True)
    if draft.digest != row["digest"]:
        # The stored order was changed behind our back.
        raise ApprovalChanged
    age = clock.now() - row["requested_at"]
    claim = Claim(str(row["id"]), caller, age < timedelta(minutes=59), age < timedelta(hours=23))
    case = Case(
        ref=AgentRef(caller.tenant, row["agent_id"]),
        tx_id=str(row["tx_id"]),
        draft=draft,
        caller=caller,
        origin=origin,
        key=key,
        claim=claim,
    )
    return await settle(signer, case)


async def deny(
    signer: Signer, message: Deny, caller: ProvenTenant, origin: Origin, key: IdempotencyKey | None
) -> tuple[Outcome, bool]:
    """Reject the order; it can never be signed afterwards."""
    if (answer := await earlier(signer, caller.tenant, caller.principal, key)) is not None:
        return answer, True
    row = await _pending(signer, caller, message)
    resolved = clock.now()
    outcome = Done(
        {
            "approvalId": str(row["id"]),
            "txId": str(row["tx_id"]),
            "status": "rejected",
            "resolvedAt": clock.iso(resolved),
            "resolvedBy": "manual",
        }
    )
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _DENY, caller.tenant, row["agent_id"], row["id"], row["digest"], message.reason, caller.key_hash, caller.principal,
            key.route if key else None, key.key_hash if key else None, key.fingerprint if key else None, packed(outcome),
            "system", caller.principal, _metadata(row, message.reason), [origin.request_id, origin.ip, origin.user_agent],
            _denied_event(row, message.reason), resolved,
        )  # fmt: skip
    if result == "unclaimed":
        await _pending(signer, caller, message)
        raise ApprovalExpired
    if result != "done":
        raise Unavailable
    return outcome, False


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
