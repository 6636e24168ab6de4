"""Audit rows, pages and checkpoints as answers show them. Spec 2/2.14, 10."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

# What is compared with a column: no control characters, for Postgres keeps no NUL in any text.
_Word = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
_Action = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+\Z")]
_Instant = Annotated[str, Meta(min_length=20, max_length=35)]
_Cursor = Annotated[str, Meta(min_length=1, max_length=18, pattern=r"^(0|[1-9][0-9]*)\Z")]


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which rows; all that is given must hold. `metadata.<path>` is compared as text."""

    action: _Action | None = None
    action_prefix: _Action | None = None
    actor_type: Literal["user", "agent", "system"] | None = None
    actor_id: _Word | None = None
    resource_type: _Word | None = None
    resource_id: _Word | None = None
    request_id: _Word | None = None
    date_from: _Instant | None = None
    date_to: _Instant | None = None
    # Every parameter that begins so; their paths and values are looked at in `filters`.
    metadata: dict[str, str] = msgspec.field(name="metadata.", default_factory=dict)


class AuditQuery(AuditFilter, frozen=True, kw_only=True, rename="camel"):
    """Which rows, and which page of them."""

    page: Annotated[int, Meta(ge=1, le=5000)] = 1
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class AuditExportQuery(AuditFilter, frozen=True, kw_only=True, rename="camel"):
    """Which rows, in which form, and where to go on. `since`: the size of a checkpoint that one already has."""

    format: Literal["csv", "ndjson"] = "ndjson"
    cursor: _Cursor | None = None
    since: Annotated[int, Meta(ge=1, le=2**62)] | None = None


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


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """Where the page lies. Rows are counted up to a thousand behind the page; where more follow, `total` ends there."""

    page: int
    limit: int
    total: int
    total_pages: int


class AuditPage(msgspec.Struct, frozen=True):
    """One page of rows, newest first."""

    data: list[AuditEvent]
    pagination: Pagination


class AuditCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint; `checkpoint` is the signed note, the rest is what it says."""

    size: int
    root: str
    checkpoint: str
    created_at: str
