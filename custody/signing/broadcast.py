"""Hand signed bytes to a node, and tell the signer that it has them.

A node that refuses is asked whether it knows the hash before that is believed: `nonce too low` and `already known` are
also what it says of our own transaction.
"""

from custody.chains.family import Chain
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.nodes import nodes_of
from custody.chains.rpc import Rpc, RpcUnavailable
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, UpstreamFailed
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.orders import BroadcastOutcome
from custody.protocol.signer.outcomes import Signed

log = logger(__name__)


class NotBroadcast(UpstreamFailed):
    """Signed, but the node has not accepted it yet; the service will broadcast it again. Do not sign again."""


async def send(ports: Ports, tenant: str, chain: Chain | None, outcome: Signed, *, again: bool = False) -> None:
    """Broadcast; NotBroadcast (502) names the signed transaction, which the scheduler goes on sending.

    What was just signed is sent whatever was asked before; `again`, for an answer of before, only if more may be asked.
    """
    try:
        rpc = await _rpc(ports, tenant, again=again)
        await hand_over(rpc, chain, outcome.kind, outcome.raw or b"", outcome.tx_hash or "")
    except (UpstreamFailed, NodeCallsSpent) as problem:
        raise NotBroadcast(
            f"{NotBroadcast().message} ({problem.message})",
            code=problem.code,
            txId=outcome.tx_id,
            txHash=outcome.tx_hash,
            status="signed",
        ) from None
    await _note(ports, tenant, outcome.tx_id)


async def _rpc(ports: Ports, tenant: str, *, again: bool) -> Rpc:
    try:
        share = await ports.node_shares.of(ports.pool, tenant)
    except CustodyError:
        # Whose it is can wait; what is signed can't.
        return ports.rpc
    return ports.rpc.preparing(share) if again else ports.rpc.sending(share)


async def hand_over(rpc: Rpc, chain: Chain | None, kind: str, raw: bytes, tx_hash: str) -> None:
    """Give the bytes to a node of the chain; raises UpstreamFailed when none has them afterwards."""
    if chain is None or not chain.rpc_urls:
        raise RpcUnavailable("No node is configured for this chain.")
    await nodes_of(chain).broadcast(rpc, chain, raw, tx_hash)


async def _note(ports: Ports, tenant: str, tx_id: str) -> None:
    """Tell the signer; if that fails, the scheduler sends again and finds out."""
    try:
        await ports.workers.tell(BroadcastOutcome(tenant, tx_id, "sent"), Origin(f"broadcast-{tx_id}"))
    except CustodyError as problem:
        log.warning("outcome not noted", extra={"tx_id": tx_id, "reason": problem.code})
