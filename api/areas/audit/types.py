"""Audit rows, pages and checkpoints as answers show them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.cursors import Cursor as PageCursor
from custody.kit.cursors import NextCursor
from custody.kit.described import Instant, described
from custody.kit.search_bounds import Bound

# What is compared with a column: no control characters, for Postgres keeps no NUL in any text.
_Word = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
_Action = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+\Z")]
_Cursor = Annotated[str, Meta(min_length=1, max_length=18, pattern=r"^(0|[1-9][0-9]*)\Z")]


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The rows to find; all that is given must hold. `metadata.<path>` is compared as text."""

    action: Annotated[_Action | None, described("Exactly this action, such as `tx.signed`.")] = None
    action_prefix: Annotated[_Action | None, described("Actions that begin so, such as `tx.`.")] = None
    actor_type: Annotated[Literal["user", "agent", "system"] | None, described("Type of the actor.")] = None
    actor_id: Annotated[_Word | None, described("Id of the actor.")] = None
    resource_type: Annotated[_Word | None, described("Type of the resource.")] = None
    resource_id: Annotated[_Word | None, described("Id of the resource.")] = None
    request_id: Annotated[_Word | None, described("The `X-Request-Id` of the request.")] = None
    date_from: Annotated[Bound | None, described("Not before this time, RFC 3339 with a zone, or this date.")] = None
    date_to: Annotated[Bound | None, described("Not after this time, RFC 3339 with a zone, or this date.")] = None
    # Every parameter that begins so; their paths and values are looked at in `filters`.
    metadata: dict[str, str] = msgspec.field(name="metadata.", default_factory=dict)


class AuditQuery(AuditFilter, frozen=True, kw_only=True, rename="camel"):
    """The rows to find, and the page of them."""

    page: Annotated[int, Meta(ge=1, le=5000), described("Number of the page, from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, le=200), described("Number of rows on a page.")] = 50
    cursor: Annotated[PageCursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None


class AuditExportQuery(AuditFilter, frozen=True, kw_only=True, rename="camel"):
    """Rows to export, their form, and the place to go on. `since`: the size of a checkpoint that one already has."""

    format: Annotated[Literal["csv", "ndjson"], described("The form of the file.")] = "ndjson"
    cursor: Annotated[_Cursor | None, described("`X-Next-Cursor` of the part before.")] = None
    since: Annotated[
        Annotated[int, Meta(ge=1, le=2**62)] | None,
        described("The size of a checkpoint that you have: rows after it, with a proof that the log only grew."),
    ] = None


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `unreadable` names fields that could not be read: they hold the raw text, or its digest."""

    id: Annotated[str, described("The row's id.")]
    seq: Annotated[int, described("Its number in the tenant's log.")]
    actor_type: Annotated[str, described("Type of the actor.")]
    actor_id: Annotated[str, described("Id of the actor.")]
    action: Annotated[str, described("The action, such as `tx.signed`.")]
    resource_type: Annotated[str, described("Type of the resource.")]
    resource_id: Annotated[str, described("Id of the resource.")]
    metadata: Annotated[dict[str, Any], described("Details of the action.")]
    ip_address: Annotated[str | None, described("The address that the request came from.")]
    user_agent: Annotated[str | None, described("User agent that the client sent.")]
    request_id: Annotated[str | None, described("The `X-Request-Id` of the request.")]
    created_at: Annotated[Instant, described("Time of the event.")]
    unreadable: Annotated[
        list[str] | UnsetType, described("Fields that could not be read; they hold the raw text, or its digest.")
    ] = UNSET


class Pagination(msgspec.Struct, frozen=True, rename="camel"):
    """The position of the page, and the cursor of the next."""

    page: Annotated[int, described("This page, from 1.")]
    limit: Annotated[int, described("Number of rows on a page.")]
    total: Annotated[
        int,
        Meta(
            description="Number of rows. With a filter they are counted up to a thousand beyond the page; "
            "where there are more, `totalIsEstimate` is true and this is the least there are."
        ),
    ]
    total_pages: Annotated[int, Meta(description="Number of pages that `page` reaches, at most 5,000.")]
    total_is_estimate: Annotated[bool, Meta(description="True if there may be more rows than `total`.")]
    total_pages_is_estimate: Annotated[
        bool, Meta(description="True if there may be more pages than `totalPages`; `nextCursor` reaches them all.")
    ]
    next_cursor: Annotated[NextCursor, described("Start of the next page, for `cursor`; null on the last one.")]


class AuditPage(msgspec.Struct, frozen=True):
    """One page of rows, newest first."""

    data: Annotated[list[AuditEvent], described("The rows, newest first.")]
    pagination: Annotated[Pagination, described("Position of this page.")]

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page."""
        return self.pagination.next_cursor


class AuditCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint; `checkpoint` is the signed note, the other fields are its content."""

    size: Annotated[int, described("Number of rows in the log.")]
    root: Annotated[str, described("The root hash of the tree over them.")]
    checkpoint: Annotated[str, described("The signed note.")]
    created_at: Annotated[Instant, described("Time of signing.")]
