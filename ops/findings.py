"""What a check of `custody doctor` gives back."""

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """What one check found; a cure is there exactly when something is wrong."""

    subject: str
    found: str
    cure: str | None = None
