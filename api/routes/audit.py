"""The audit trail: searched, exported with its proofs, and the checkpoints of its log. Spec 2/10, decisions 7."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.audit import export, search
from custody.audit.export import LogDamaged, NotSealedYet
from custody.audit.filters import BadFilter
from custody.audit.search import ReadingAlready
from custody.audit.types import AuditCheckpoint, AuditExportQuery, AuditPage, AuditQuery
from custody.kit.callers import SessionCaller
from custody.kit.paging import Page
from custody.ports import Ports

routes = Routes("/audit", tag="Audit")


@routes.get(
    "/events", who=admin_mfa("audit"), returns={200: AuditPage}, fails=(BadFilter, ReadingAlready), private=True
)
async def events(ports: Ports, caller: SessionCaller, query: AuditQuery) -> Any:
    """List audit events, newest first.

    `metadata.<path>` looks for an exact value at a dot-separated path, compared as text; up to five of them.
    """
    return await search.page(ports.pool, caller.tenant, query)


@routes.get(
    "/export", who=admin_mfa("audit"), returns={200: str}, fails=(BadFilter, LogDamaged, NotSealedYet, ReadingAlready),
    media="application/x-ndjson", media_too="text/csv", private=True,
)  # fmt: skip
async def export_events(ports: Ports, caller: SessionCaller, query: AuditExportQuery) -> Any:
    """Get up to 10,000 audit events as a file: NDJSON with proofs, or CSV.

    NDJSON ends with the newest checkpoint and the hashes that lead to it; `custody audit verify` checks it offline.
    Where there are more rows, `X-Next-Cursor` says where the next call goes on.
    """
    return await export.export(ports.pool, caller.tenant, query)


@routes.get("/checkpoints", who=admin_mfa("audit"), returns={200: list[AuditCheckpoint]}, private=True)
async def checkpoints(ports: Ports, caller: SessionCaller, query: Page) -> Any:
    """List the checkpoints of the tenant's sealed log, newest first."""
    return await search.checkpoints(ports.pool, caller.tenant, query)
