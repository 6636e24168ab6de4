"""Rows that the proxy has written."""

from typing import Any

import msgspec

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.proxied import Keyless

ROWS = """
SELECT actor_type, actor_id, action, resource_type, resource_id, metadata, ip_address, user_agent, request_id,
       written_by
  FROM audit WHERE tenant_id = $1 AND action = 'proxy.request' ORDER BY created_at, request_id
"""


async def rows(keyless: Keyless, count: int) -> list[dict[str, Any]]:
    """The rows of a tenant, once so many are there."""
    async with owner_of(keyless.proxied.database) as owner:
        found = await soon(lambda: owner.fetch(ROWS, keyless.tenant.id), lambda rows: len(rows) >= count)
    return [{**row, "metadata": msgspec.json.decode(row["metadata"])} for row in found]
