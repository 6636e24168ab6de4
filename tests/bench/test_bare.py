"""The bench's script for pgbench writes an order as the signer does, whatever fields the functions have by now."""

import asyncio

import asyncpg

from bench import bare
from tests.fixtures.callers import new_tenant
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service


async def test_the_script_writes_a_whole_order(service: Service, database: Database, owner: asyncpg.Connection) -> None:
    with new_tenant(service, "bench") as tenant:
        tenant.agent(agent_id="bare-0")

    done = await asyncio.to_thread(bare.orders, database.urls["signer"], agents=1)

    assert done.count == 1
    rows = await owner.fetch("SELECT agent_id, family, status, nonce FROM transactions WHERE tenant_id = 'bench'")
    assert [tuple(row) for row in rows] == [("bare-0", "evm", "signed", 0)]
    written = await owner.fetchrow(
        "SELECT (SELECT count(*) FROM nonces WHERE tenant_id = 'bench') AS slots,"
        " (SELECT count(*) FROM spend WHERE tenant_id = 'bench') AS spends,"
        " (SELECT count(*) FROM rate WHERE tenant_id = 'bench') AS counts,"
        " (SELECT orders FROM agents WHERE tenant_id = 'bench') AS orders"
    )
    assert tuple(written) == (1, 1, 2, 1)
