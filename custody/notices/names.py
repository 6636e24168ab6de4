"""Names of what a channel may be told of."""

from typing import Final, get_args

from custody.notices.types import NoticeName

DEFAULTS: Final[tuple[str, ...]] = get_args(NoticeName)


def in_order(names: list[NoticeName] | None) -> list[NoticeName] | None:
    """Names once each, in the order of the list above; None stays: the defaults."""
    return None if names is None else [name for name in get_args(NoticeName) if name in names]
