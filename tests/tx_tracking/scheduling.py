"""A scheduler's jobs run by a test's own hand, so that it says when: against the real database, signer and nodes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec

from custody.chains import chains_file
from custody.chains.rpc import Rpc
from custody.kit import db
from custody.ports import Ports
from custody.protocol.client import SignerClient
from scheduler.signing.resend import resend
from scheduler.tx_tracking.follow import follow
from scheduler.webhooks.publish import publish
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.server import Service


class Scheduling:
    """Everything is due at once; each job runs once to its end."""

    def __init__(self, ports: Ports, owner: asyncpg.Connection) -> None:
        self.ports, self._owner = ports, owner

    async def look(self) -> int:
        """Follow whatever is followed."""
        await self.make_due()
        return await follow(self.ports)

    async def send(self) -> int:
        """Send whatever is signed and not sent."""
        await self.make_due()
        return await resend(self.ports)

    async def make_due(self) -> None:
        """Let every time that a job waits for be now."""
        await self._owner.execute("UPDATE transactions SET look_at = now() WHERE look_at IS NOT NULL")
        await self._owner.execute("UPDATE transactions SET resend_at = now() WHERE resend_at IS NOT NULL")

    async def grow_old(self, tx_id: str, seconds: int) -> None:
        """Let a transaction have been signed earlier."""
        await self._owner.execute(
            "UPDATE transactions SET signed_at = signed_at - make_interval(secs => $2) WHERE id = $1", tx_id, seconds
        )

    async def audit_rows(self, tx_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Read the audit rows of a transaction after it was sent, with the evidence."""
        rows = await self._owner.fetch(
            "SELECT action, metadata FROM audit WHERE resource_id = $1 AND action IN ('tx.confirmed', 'tx.failed') "
            "ORDER BY seq",
            tx_id,
        )
        return [(row["action"], msgspec.json.decode(row["metadata"])) for row in rows]

    async def events(self, tenant: Tenant, tx_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Read the events of a transaction after it was sent from the tenant's stream."""
        await publish(self.ports)
        # Its first event is of a signature: everything later is read.
        first = await self._owner.fetchval("SELECT min(number) FROM events WHERE tenant_id = $1", tenant.id)
        answer = await asyncio.to_thread(tenant.get, "/events?follow=false", headers={"Last-Event-ID": str(first)})
        told = [
            msgspec.json.decode(line.removeprefix("data: "))
            for line in answer.text.splitlines()
            if line.startswith("data: ")
        ]
        return [
            (one["event"], one["data"])
            for one in told
            if one["event"] in ("tx.confirmed", "tx.failed") and one["data"]["txId"] == tx_id
        ]

    async def slot(self, agent: Agent, nonce: int = 0) -> tuple[str, str]:
        """Return the holder of a nonce, and its state."""
        row = await self._owner.fetchrow(
            "SELECT tx_id::text, state FROM nonces WHERE address = $1 AND nonce = $2", agent.evm_address, nonce
        )
        return row["tx_id"], row["state"]


@asynccontextmanager
async def scheduling(service: Service, world: dict[str, str], owner: asyncpg.Connection) -> AsyncIterator[Scheduling]:
    """Connect as a scheduler does."""
    chains = chains_file.load({**world, "SERVICE_DEFAULT_CHAIN_ID": "31337"})
    pool = await db.open_pool(service.database.urls["scheduler"], size=2)
    ports = Ports(pool=pool, workers=SignerClient(str(service.socket), "scheduler"), chains=chains, rpc=Rpc())
    try:
        yield Scheduling(ports, owner)
    finally:
        await ports.workers.close()
        await ports.rpc.close()
        await pool.close()


def send(agent: Agent, value: int = 1, **fields: Any) -> dict[str, Any]:
    """Sign and broadcast; the record."""
    answer = agent.sign(value=value, **{"broadcast": True, **fields})
    assert answer.status_code == 200, answer.text
    return record(agent, answer.json()["data"]["txId"])


def replace(agent: Agent, tx_id: str, **fees: str) -> dict[str, Any]:
    """Replace; the replacement's record."""
    answer = agent.post(f"/vault/{agent.id}/transactions/{tx_id}/replace", json=fees)
    assert answer.status_code == 200, answer.text
    return record(agent, answer.json()["data"]["txId"])


def record(agent: Agent, tx_id: str) -> dict[str, Any]:
    """A transaction as the agent sees it."""
    found: dict[str, Any] = agent.ok("GET", f"/vault/{agent.id}/transactions/{tx_id}")
    return found


def became(agent: Agent, *tx_ids: str) -> list[tuple[str, str | None]]:
    """Status and detail of each."""
    records = [record(agent, tx_id) for tx_id in tx_ids]
    return [(one["status"], one["statusDetail"]) for one in records]
