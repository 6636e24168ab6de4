"""A past for one agent: transactions, spend and audit rows, written straight into the tables as their owner."""

import asyncio

import asyncpg

from bench.deployment import Deployment

_ROWS = """
INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, to_address, value, chain_id, caip2, broadcast, order_text,
    digest, effects, policy_results, policy_version, tx_hash, signature, signed_bytes, answer, created_at, signed_at)
SELECT 'bench', gen_random_uuid(), a.id, a.incarnation, 'evm', 'evm', 'signed', '0x' || repeat('0', 39) || '1', 1, 31337, 'eip155:31337', false,
    repeat('o', 150), sha256('d'), repeat('e', 300), repeat('r', 500), 1, md5(g::text), md5(g::text), decode(repeat('ab', 115), 'hex'),
    decode(repeat('cd', 400), 'hex'), now() - g * interval '6 seconds', now() - g * interval '6 seconds'
  FROM agents a, generate_series(1, $2::integer) g WHERE a.tenant_id = 'bench' AND a.id = $1
"""
_SPEND = """
INSERT INTO spend (tenant_id, agent_id, incarnation, asset, hour, amount)
SELECT 'bench', a.id, a.incarnation, 'evm:native', date_trunc('hour', now()) - g * interval '1 hour', 100
  FROM agents a, generate_series(1, 168) g WHERE a.tenant_id = 'bench' AND a.id = $1 ON CONFLICT DO NOTHING
"""


def give(deployment: Deployment, agent: str, rows: int) -> None:
    """Give an agent this many transactions, and every hour of its week a spend row."""
    asyncio.run(_give(deployment.owner_url, agent, rows))


async def _give(owner_url: str, agent: str, rows: int) -> None:
    connection = await asyncpg.connect(owner_url)
    await connection.execute(_ROWS, agent, rows)
    await connection.execute(_SPEND, agent)
    await connection.execute("ANALYZE transactions; ANALYZE spend")
    await connection.close()
