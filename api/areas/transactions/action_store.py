"""Queries of wallet actions."""

from typing import Any, Final

import msgspec

from api.areas.transactions.actions import ActionAbsent, ActionStatus, Found, TransferAction
from custody.chains.actions import WalletAction
from custody.chains.evm.address import checksum
from custody.chains.evm.transfers import NATIVE
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.refs import AgentRef
from custody.policies.types import decode_results

# Actions have no word for what is final on the chain: there it was broadcast, and the transaction says more.
_SHOWN: Final[dict[str, ActionStatus]] = {"confirmed": "broadcast"}
_ONE = (
    "SELECT id, agent_id, status, status_detail, chain_id, caip2, broadcast, reference_id, tx_hash, effects, "
    "policy_results, created_at, wallet_action FROM transactions WHERE tenant_id = $1 AND id = $2"
)
_decode = msgspec.json.Decoder(WalletAction).decode


async def get(pool: Pool, ref: AgentRef, action_id: str) -> TransferAction:
    """One action of an agent, as it is now; ActionAbsent if there is none."""
    return (await find(pool, ref, action_id)).action


async def find(pool: Pool, ref: AgentRef, action_id: str) -> Found:
    """The same, with the detail of its status."""
    async with tenant_scope(pool, ref.tenant) as connection:
        row = await connection.fetchrow(_ONE, ref.tenant, action_id)
    if row is None or row["agent_id"] != ref.agent or row["wallet_action"] is None:
        raise ActionAbsent
    if _decode(row["wallet_action"]).type != "transfer":
        # A batch that was refused; what becomes of the others is told by their intents.
        raise ActionAbsent
    return Found(_to_public(row), row["status_detail"])


def _to_public(row: Any) -> TransferAction:
    action, tx_id = _decode(row["wallet_action"]), str(row["id"])
    # As the signer saw it: it compares the wallet with its key, and the effects come from there.
    sender = next((one["from"] for one in msgspec.json.decode(row["effects"]) if one["from"]), None)
    return TransferAction(
        id=tx_id,
        action_id=tx_id,
        agent_id=row["agent_id"],
        status=_SHOWN.get(row["status"], row["status"]),
        chain_id=row["chain_id"],
        caip2=row["caip2"],
        from_=checksum(sender) if sender else None,
        to=action.recipient,
        value=action.amount,
        token=action.token or NATIVE,
        broadcast=row["broadcast"],
        reference_id=row["reference_id"],
        tx_id=tx_id,
        tx_hash=row["tx_hash"],
        policy_results=decode_results(row["policy_results"]),
        created_at=clock.iso(row["created_at"]),
    )
