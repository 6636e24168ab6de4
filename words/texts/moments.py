"""Times in words. Pure, but for `local_now`."""

from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def local_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)  # noqa: TID251 - the console imports nothing of Custody


def moment(text: str | None) -> datetime | None:
    """A time of the API (ISO 8601); None for none, and for what is no time."""
    try:
        found = datetime.fromisoformat(text) if text else None
        if found is None:
            return None
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def span(length: timedelta) -> str:
    """A length in at most two units: `4s`, `3m 12s`, `2h 05m`, `6d 3h`. A negative one is `0s`."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3_600}h {seconds % 3_600 // 60:02}m"
    return f"{seconds // 86_400}d {seconds % 86_400 // 3_600}h"


def ago(then: datetime | None, now: datetime) -> str:
    """Tell how long ago, for a list: one unit."""
    if then is None:
        return "-"
    seconds = max(0, int((now - then).total_seconds()))
    for size, name in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{name}"
    return f"{seconds}s"


def clock(then: datetime | None) -> str:
    """A time to the second, in UTC and saying so."""
    return "-" if then is None else then.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
