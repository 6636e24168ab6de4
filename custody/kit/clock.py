"""The one place where processes read the time. SQL reads it through `service_now()`."""

from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def iso(moment: datetime) -> str:
    """ISO 8601 with `Z` and milliseconds, as every answer shows time. Decisions 1."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def unix_microseconds(moment: datetime) -> int:
    """The Unix time of a moment, to the last digit that the database keeps."""
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def of_unix(seconds: int) -> datetime:
    """The moment of a Unix time."""
    return datetime.fromtimestamp(seconds, UTC)
