"""The one place where processes read the time. SQL reads it through `service_now()`."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def iso(moment: datetime) -> str:
    """ISO 8601 with `Z` and milliseconds, as every answer shows time. Decisions 1."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
