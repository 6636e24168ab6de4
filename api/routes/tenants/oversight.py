"""Pages for a tenant's admins: the security checklist, figures of idempotency keys."""

from api.areas.checklist.run import run
from api.areas.checklist.types import Checklist
from api.http import idempotency_metrics as metrics
from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.idempotency.types import IdempotencyMetrics
from custody.kit.answer_kinds import Document
from custody.kit.callers import SessionCaller
from custody.ports import Ports

routes = Routes("/tenants/<tenant_id>", tag="Oversight")


@routes.get("/security-checklist", who=admin_mfa(), private=True)
async def get_security_checklist(ports: Ports, caller: SessionCaller, tenant_id: str) -> Checklist:
    """Check the tenant's security settings; the response has states and figures only."""
    return await run(ports, caller.tenant)


@routes.get("/idempotency-metrics", who=admin_mfa())
async def get_idempotency_metrics(ports: Ports, caller: SessionCaller, tenant_id: str) -> IdempotencyMetrics:
    """Get counts of requests with an Idempotency-Key by outcome."""
    return await metrics.read(ports.pool, ports.counts, caller.tenant)


@routes.get("/idempotency-metrics/export", who=admin_mfa(), media="text/csv", private=True)
async def export_idempotency_metrics(ports: Ports, caller: SessionCaller, tenant_id: str) -> Document:
    """Get the same counts as CSV: a header and one row."""
    return await metrics.export(ports.pool, ports.counts, caller.tenant)
