"""The checks of `custody doctor` on quotas: which tenants are near one, before they meet it."""

from typing import Any

import asyncpg

from custody.kit import quotas
from custody.kit.quotas import Limits
from ops.findings import Finding

# Of a quota; from there on a tenant is named.
NEAR = 0.9
# Tenants that are named, the nearest first.
_NAMED = 5
_USED = """
SELECT t.id AS tenant, a.*, COALESCE(a.day_orders, 0) + COALESCE(d.orders, 0) AS orders_per_day,
       COALESCE(a.day_bytes, 0) + COALESCE(d.bytes, 0) AS bytes_per_day,
       (SELECT count(*) FROM secrets s WHERE s.tenant_id = t.id AND s.deleted_at IS NULL) AS secrets,
       (SELECT count(*) FROM credential_routes c WHERE c.tenant_id = t.id)
         + (SELECT count(*) FROM payment_routes p WHERE p.tenant_id = t.id) AS credential_routes,
       (SELECT count(*) FROM webhook_endpoints w WHERE w.tenant_id = t.id AND w.deleted_at IS NULL) AS webhooks,
       (SELECT count(*) FROM memberships m WHERE m.tenant_id = t.id) AS members
  FROM tenants t
  LEFT JOIN deleted_agents d ON d.tenant_id = t.id AND d.day = utc_day()
 CROSS JOIN LATERAL (
   SELECT count(*) AS agents, sum(a.policy_bytes) AS policy_bytes, sum(a.orders) AS orders,
          sum(a.day_orders) FILTER (WHERE a.day = utc_day()) AS day_orders,
          sum(a.day_bytes) FILTER (WHERE a.day = utc_day()) AS day_bytes
     FROM agents a WHERE a.tenant_id = t.id) a
"""


async def near(connection: asyncpg.Connection, limits: Limits) -> Finding:
    """Tenants that are near a quota, or at it. No tenant's use makes this installation a broken one."""
    found: list[tuple[float, str]] = []
    count = 0
    async with connection.transaction():
        async for row in connection.cursor(_USED):
            there = _near(row, limits)
            count += bool(there)
            found = sorted((*found, *there), reverse=True)[:_NAMED]
    if not found:
        return Finding("quotas", "no tenant is near a limit")
    named = ", ".join(words for _, words in found)
    raised = "; SERVICE_QUOTA_* raises one for all, SERVICE_QUOTAS_FILE for one tenant (docs/environment.md)"
    return Finding("quotas", f"{count} tenants at or near a limit: {named}{raised}")


def _near(row: Any, limits: Limits) -> list[tuple[float, str]]:
    allowed = limits.of(row["tenant"])
    found = []
    for name in quotas.STORED:
        used, limit = int(row[name] or 0), getattr(allowed, name)
        if limit and used >= NEAR * limit:
            found.append((used / limit, f"{row['tenant']} ({quotas.camel(name)} {used:,} of {limit:,})"))
    return found
