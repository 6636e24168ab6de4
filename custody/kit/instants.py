"""Times as people and programs write them: RFC 3339, the part of ISO 8601 that can be read in one way only."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\Z"
)


def read_instant(text: str) -> datetime | None:
    """The moment in UTC, or None for what is no date and time with seconds and a zone.

    Digits beyond microseconds are dropped. A leap second is refused: no clock here can show one.
    """
    if not _RFC3339.match(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    # A zone can carry the first and last day of the calendar out of it.
    except (ValueError, OverflowError):
        return None
