"""Rows of channels and notices as they are shown, the same by the process that reads them and by identity."""

from typing import Any

from custody.kit import clock
from custody.notices.names import DEFAULTS
from custody.notices.types import Notice, NotificationChannel, QuietHours


def channel_of(row: Any) -> NotificationChannel:
    """A channel, from its whole row."""
    quiet = None
    if row["quiet_zone"] is not None:
        quiet = QuietHours(f"{row['quiet_start']:%H:%M}", f"{row['quiet_end']:%H:%M}", row["quiet_zone"])
    return NotificationChannel(
        id=str(row["id"]),
        tenant_id=row["tenant_id"],
        kind=row["kind"],
        host=row["host"],
        last_four=row["last_four"],
        events=list(DEFAULTS) if row["events"] is None else row["events"],  # type: ignore[arg-type]
        detail=row["detail"],
        after_minutes=row["after_minutes"],
        quiet_hours=quiet,
        description=row["description"],
        enabled=row["enabled"],
        disabled_reason=row["disabled_reason"],
        created_at=clock.iso(row["created_at"]),
        last_delivered_at=_moment(row["delivered_at"]),
    )


def notice_of(row: Any) -> Notice:
    """A message, from its row."""
    return Notice(
        id=str(row["id"]),
        purpose=row["purpose"],
        status=row["status"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        next_retry_at=_moment(row["next_retry_at"]),
        error=row["error"],
        created_at=clock.iso(row["created_at"]),
        delivered_at=_moment(row["delivered_at"]),
    )


def _moment(at: Any) -> str | None:
    return None if at is None else clock.iso(at)
