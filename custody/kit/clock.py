"""The one place where processes read the time. SQL reads it through `service_now()`."""

from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def iso(moment: datetime) -> str:
    """ISO 8601 with `Z` and milliseconds, as every answer shows time."""
    # Several in every answer and log line: strftime takes four times as long.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def iso_or_none(moment: datetime | None) -> str | None:
    """The same for a moment that may be absent."""
    return None if moment is None else iso(moment)


def unix_microseconds(moment: datetime) -> int:
    """The Unix time of a moment, to the last digit that the database keeps."""
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def minute_of(moment: datetime) -> datetime:
    """The start of its minute."""
    return moment.replace(second=0, microsecond=0)


def of_unix(seconds: int) -> datetime:
    """The moment of a Unix time."""
    return datetime.fromtimestamp(seconds, UTC)
