"""A holder that has just wrapped a key."""

from collections.abc import Callable

import msgspec

from custody.kit.key_head import Head, Holder


class Wrapped(msgspec.Struct, frozen=True):
    """The holder, and how to have it open a head again; None where nobody can do that here."""

    holder: Holder
    open: Callable[[Head], bytes] | None
