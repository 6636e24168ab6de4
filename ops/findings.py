"""The result of a check of `custody doctor`."""

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """The finding of one check; a cure is there exactly when something is wrong."""

    subject: str
    found: str
    cure: str | None = None
