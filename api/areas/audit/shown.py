"""One audit row as a search shows it. A row that cannot be read is shown as it lies, and named so. Pure."""

from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.audit.types import AuditEvent
from custody.audit.leaf import Read

# Deeper than anything that the service writes; what goes on deeper is shown as text.
MAX_DEPTH = 64


def event(read: Read) -> AuditEvent:
    """The row; metadata that is no JSON object stands as text under `unreadable`."""
    row, metadata = read.row, _metadata(read)
    return AuditEvent(
        id=str(row.seq),
        seq=row.seq,
        actor_type=row.actor_type,
        actor_id=row.actor_id,
        action=row.action,
        resource_type=row.resource_type,
        resource_id=row.resource_id,
        metadata={"unreadable": row.metadata} if metadata is None else metadata,
        ip_address=row.ip_address,
        user_agent=row.user_agent,
        request_id=row.request_id,
        created_at=row.created_at if "created_at" in read.unreadable else row.created_at[:-4] + "Z",
        unreadable=_names(read, metadata) or UNSET,
    )


def unreadable_in(read: Read) -> list[str]:
    """The columns of a row that are not what they should be."""
    return _names(read, _metadata(read))


def _names(read: Read, metadata: dict[str, Any] | None) -> list[str]:
    return sorted({*read.unreadable, *(["metadata"] if metadata is None else [])})


def _metadata(read: Read) -> dict[str, Any] | None:
    if "metadata" in read.unreadable:
        return None
    try:
        found = msgspec.json.decode(read.row.metadata, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return None if _too_deep(found) else found


def _too_deep(metadata: dict[str, Any]) -> bool:
    level: list[Any] = [metadata]
    for _ in range(MAX_DEPTH):
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for values in inside for value in values]
        if not level:
            return False
    return True
