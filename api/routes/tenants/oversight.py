"""What a tenant's admins look at: the security checklist, figures of idempotency keys. Spec 2/4.3."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.checklist.run import run
from custody.checklist.types import Checklist
from custody.idempotency import metrics
from custody.idempotency.types import IdempotencyMetrics
from custody.kit.callers import SessionCaller
from custody.ports import Ports

routes = Routes("/tenants/<tenant_id>", tag="Oversight")


@routes.get("/security-checklist", who=admin_mfa(), returns={200: Checklist}, private=True)
async def checklist(ports: Ports, caller: SessionCaller, tenant_id: str) -> Any:
    """Look through the tenant's security; states and figures alone."""
    return await run(ports, caller.tenant)


@routes.get("/idempotency-metrics", who=admin_mfa(), returns={200: IdempotencyMetrics})
async def idempotency_metrics(ports: Ports, caller: SessionCaller, tenant_id: str) -> Any:
    """Get what requests with an Idempotency-Key came to."""
    return await metrics.read(ports.pool, ports.counts, caller.tenant)


@routes.get("/idempotency-metrics/export", who=admin_mfa(), returns={200: str}, media="text/csv", private=True)
async def export_idempotency_metrics(ports: Ports, caller: SessionCaller, tenant_id: str) -> Any:
    """Get the same as CSV: names, and one row of times and figures."""
    return await metrics.export(ports.pool, ports.counts, caller.tenant)
