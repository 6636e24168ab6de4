"""The end of what a signed document lets others do, where its kind is read and has a deadline."""

from typing import Final

from custody.chains.evm.typed_data import Document
from custody.chains.evm.typed_effects import is_read

# The last second in which a contract takes the document. A 0x order's `expiry` is the first one in which it does not:
# there the end is said a second late, never early.
_LAST: Final = ("deadline", "sigDeadline", "validTo", "expiry", "expiration")
# The first second in which it does not.
_FIRST: Final = ("validBefore", "endTime")
# Where 0 is no end: Dai's permit, Polymarket's order.
_NEVER: Final = frozenset({("Permit", "expiry"), ("Order", "expiration")})


def ends_at(document: Document) -> int | None:
    """The second since 1970 from which on nobody can use the signature; None where nothing is known of an end.

    Of a tree of orders each has its own, so nothing is said.
    """
    if not is_read(document):
        return None
    for names, more in ((_LAST, 1), (_FIRST, 0)):
        for name in names:
            end = document.message.get(name)
            if isinstance(end, int) and (end or (document.primary_type, name) not in _NEVER):
                return end + more
    return None
