"""Audit rows of the API, and the same in lines. Pure."""

from typing import Any

import msgspec

from words.texts.fields import indent, laid_out
from words.texts.moments import clock, moment
from words.texts.plain import clip


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    id: str
    seq: int
    actor_type: str
    actor_id: str
    action: str
    resource_type: str
    resource_id: str
    metadata: dict[str, Any]
    ip_address: str | None
    user_agent: str | None
    request_id: str | None
    created_at: str
    # Fields that hold what lies there as text, because it is no time or no JSON, or is too long.
    unreadable: list[str] = []


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """Rows are counted up to a thousand behind the page; where more follow, `total` ends there."""

    page: int
    limit: int
    total: int


class AuditPage(msgspec.Struct, frozen=True):
    """One page of rows, newest first."""

    data: list[AuditEvent]
    pagination: Pagination


def in_full(row: AuditEvent) -> str:
    """Every field of a row, its metadata as indented lines: first what happened, then where it came from."""
    what = laid_out(
        [
            ("Number", f"{row.seq:,}"),
            ("Time", clock(moment(row.created_at))),
            ("Action", row.action),
            ("Actor", f"{row.actor_type} {row.actor_id}"),
            ("Resource", f"{row.resource_type} {row.resource_id}"),
        ]
    )
    whence = laid_out(
        [
            ("Address", row.ip_address or "-"),
            ("Program", clip(row.user_agent or "-", 300)),
            ("Request", row.request_id or "-"),
            ("Id", row.id),
        ]
    )
    odd = ["", f"Unreadable in this row: {clip(', '.join(row.unreadable), 300)}"] if row.unreadable else []
    metadata = [f"  {line}" for line in indent(row.metadata) or ["none"]]
    return "\n".join([what, *odd, "", "Metadata", *metadata, "", whence])
