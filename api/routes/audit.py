"""The audit trail: searched, exported with its proofs, and the checkpoints of its log."""

from api.areas.audit import export, search
from api.areas.audit.export import LogDamaged, NotSealedYet
from api.areas.audit.filters import BadFilter
from api.areas.audit.search import TooWide
from api.areas.audit.types import AuditCheckpoint, AuditExportQuery, AuditPage, AuditQuery
from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.kit.alone import ReadingAlready
from custody.kit.answer_kinds import Document
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.kit.reading import SearchesBusy, SearchingAlready, SearchTooSlow
from custody.kit.search_bounds import BadTime
from custody.ports import Ports

routes = Routes("/audit", tag="Audit")


@routes.get(
    "/events",
    who=admin_mfa("audit"),
    private=True,
    fails=(BadFilter, BadTime, ReadingAlready, SearchesBusy, SearchingAlready, SearchTooSlow, TooWide),
)
async def list_audit_events(ports: Ports, caller: SessionCaller, query: AuditQuery) -> AuditPage:
    """List audit events, newest first.

    `metadata.<path>` matches an exact value at a dot-separated path, compared as text; at most five of them.
    """
    return await search.page(ports.pool, ports.search_share, caller.tenant, query)


@routes.get(
    "/export",
    who=admin_mfa("audit"),
    fails=(
        BadFilter,
        BadTime,
        LogDamaged,
        NotSealedYet,
        ReadingAlready,
        SearchesBusy,
        SearchingAlready,
        SearchTooSlow,
        TooWide,
    ),
    media="application/x-ndjson",
    media_too="text/csv",
    private=True,
)
async def export_audit_events(ports: Ports, caller: SessionCaller, query: AuditExportQuery) -> Document:
    """Get up to 10,000 audit events as a file: NDJSON with proofs, or CSV.

    NDJSON ends with the newest checkpoint and the hashes that lead to it; `custody audit verify` checks it offline.
    If there are more rows, `X-Next-Cursor` is the cursor of the next request.
    """
    return await export.export(ports.pool, ports.search_share, caller.tenant, query)


@routes.get("/checkpoints", who=admin_mfa("audit"), private=True)
async def list_audit_checkpoints(ports: Ports, caller: SessionCaller, query: Page) -> Listed[AuditCheckpoint]:
    """List the checkpoints of the tenant's sealed log, newest first."""
    return await search.checkpoints(ports.pool, caller.tenant, query)
