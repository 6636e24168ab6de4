"""Have orders signed whose delay is over and that nobody stopped.

Rows are claimed with SKIP LOCKED and a time for their next look, so several schedulers share the work. A node is asked
afresh for nonce and fee; the signer decides whether anything is signed, and each item has one outcome however often it
is asked for. Signed bytes are sent by `resend`.
"""

import asyncio
from typing import Any

from custody.approvals import store as approvals
from custody.chains import families
from custody.chains.evm.orders import EvmOrder
from custody.chains.nodes import nodes_of
from custody.chains.orders import Prepared, load_order
from custody.chains.rpc import NotExecutable
from custody.chains.solana.orders import SolanaOrder
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, UpstreamFailed
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.orders import Release

log = logger(__name__)
PER_RUN = 50
AT_ONCE = 8


async def release(ports: Ports) -> int:
    """Ask the signer for what is due; gives back how many orders it signed."""
    rows = await approvals.claim_releases(ports.pool, PER_RUN)
    gate = asyncio.Semaphore(AT_ONCE)
    return sum(await asyncio.gather(*(_release(ports, row, gate) for row in rows)))


async def _release(ports: Ports, row: Any, gate: asyncio.Semaphore) -> bool:
    approval = str(row["id"])
    async with gate:
        try:
            message = Release(row["tenant_id"], approval, await _prepare(ports, row))
            moved = await ports.workers.tell(message, Origin(f"release-{approval}"))
        except CustodyError as problem:
            log.warning("not released yet", extra={"item": approval, "reason": problem.code})
            return False
    return moved.result == "released"


async def _prepare(ports: Ports, row: Any) -> Prepared | None:
    """Ask a node for nonce and fee of what goes to one; without an answer the signer signs only what needs none."""
    order = load_order(row["kind"], row["order_text"])
    if not isinstance(order, EvmOrder | SolanaOrder):
        return None
    chain = ports.chains.active if order.chain_id is None else ports.chains.find(order.chain_id)
    if chain is None or chain.family != families.of_kind(row["kind"]).name or not chain.rpc_urls:
        return None
    try:
        prepared: Prepared = await nodes_of(chain).prepare(ports.rpc, chain, row["address"] or "", order)
    except NotExecutable as problem:
        # The node knows the nonce all the same, and an order that is not broadcast may use it.
        return None if order.broadcast else problem.prepared
    except UpstreamFailed:
        return None
    return prepared
