"""Send again what was signed to be broadcast but was not seen to arrive. Promise P9.

Rows are claimed with SKIP LOCKED and a time for their next try, so several schedulers share the work and one that
dies delays it by seconds. Sending the same bytes twice is harmless: they are one transaction. It ends when a node has
them, or when `following` finds that none ever will: another transaction took the nonce, or the blockhash expired.
"""

import asyncio
from typing import Any

from custody.kit.callers import Origin
from custody.kit.errors import CustodyError, UpstreamFailed
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.orders import ChainOutcome
from custody.signing.broadcast import hand_over
from custody.transactions import store as transactions

log = logger(__name__)
PER_RUN = 50
AT_ONCE = 8


async def resend(ports: Ports) -> int:
    """Send what is due; gives back how many a node took."""
    rows = await transactions.claim_unsent(ports.pool, PER_RUN)
    gate = asyncio.Semaphore(AT_ONCE)
    # One wallet's transactions go in the order of their nonces, or the node refuses the later ones.
    taken = await asyncio.gather(*(_send(ports, row, gate) for row in sorted(rows, key=lambda row: row["nonce"] or 0)))
    return sum(taken)


async def _send(ports: Ports, row: Any, gate: asyncio.Semaphore) -> bool:
    tx_id = str(row["id"])
    async with gate:
        try:
            await hand_over(
                ports.rpc, ports.chains.find(row["chain_id"]), row["kind"], row["signed_bytes"], row["tx_hash"]
            )
        except UpstreamFailed as problem:
            log.info("not taken yet", extra={"tx_id": tx_id, "reason": problem.message})
            return False
        return await _note(ports, row["tenant_id"], tx_id)


async def _note(ports: Ports, tenant: str, tx_id: str) -> bool:
    try:
        await ports.workers.tell(ChainOutcome(tenant, tx_id, "sent"), Origin(f"resend-{tx_id}"))
    except CustodyError as problem:
        log.warning("outcome not noted", extra={"tx_id": tx_id, "reason": problem.code})
        return False
    return True
