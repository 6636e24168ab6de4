"""The time for which a signature over a document can be used, from the document itself. Pure.

Where the service has recognised the document by its whole type, its fields mean what they are called. Any other
document may call anything a deadline: what it says is then told as its own account.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from words.orders.order import Known, Order
from words.texts.amounts import parse_number, whole
from words.texts.lines import Line
from words.texts.moments import clock

# Nobody lives to see a later end. 1 January 2100.
_FOR_EVER: Final = 4_102_444_800
_UNTIL: Final = ("deadline", "sigDeadline", "validBefore", "expiry")
# Other words for it, in documents that are not recognised.
_OTHER: Final = ("endTime", "validTo", "expiration", "expirationTime", "expirationTimeSeconds", "validUntil")
# Where zero means that there is no end.
_ZERO_IS_NONE: Final = frozenset({"expiry", *_OTHER})
_FROM: Final = ("validAfter", "startTime")
_RECOGNISED_DEPTH: Final = 2
_MOST_DEPTH: Final = 6
_MOST_FIELDS: Final = 2_000


def validity(order: Order, known: Known) -> list[Line]:
    """Until when it can be used, and how long what it allows lasts; nothing while the document is not known."""
    message = _message(known.data) if order.kind == "typed_data" else None
    if message is None or not order.effects:
        return []
    if any(effect.unread for effect in order.effects):
        return [_own_account(message)]
    found = _fields(message, depth=_RECOGNISED_DEPTH)
    said = [_until("The", _ends(found, _UNTIL), _begins(found))]
    if any(effect.kind == "approval" and whole(effect.amount) != 0 for effect in order.effects):
        said.append(_lasts(found))
    return said


def _own_account(message: dict[str, Any]) -> Line:
    found = _fields(message, depth=_MOST_DEPTH)
    ends = _ends(found, (*_UNTIL, *_OTHER))
    if not ends:
        return Line("It names no expiry that is known here: the signature may be valid forever.", "warn")
    return _until("According to the document, the", ends, _begins(found))


def _until(whose: str, ends: list[int], begins: int) -> Line:
    # Of several ends the last counts, for until then some of it can be used.
    end = max(ends, default=_FOR_EVER)
    start = f" from {_clock(begins)}" if begins else ""
    if end >= _FOR_EVER:
        return Line(f"{whose} signature can be used forever{start and ','}{start}.", "warn")
    return Line(f"{whose} signature can be used{start} until {_clock(end)}.")


def _lasts(found: list[tuple[str, int]]) -> Line:
    """Tell how long the allowance stays once the signature was used; only Permit2 knows an end of that."""
    ends = [number for name, number in found if name == "expiration"]
    if not ends or max(ends) >= _FOR_EVER:
        return Line("Once used, the permission it grants does not expire: it stays until spent or revoked.", "warn")
    if max(ends) == 0:
        return Line("The permission ends with the block in which it is used.")
    return Line(f"The permission ends {_clock(max(ends))}.")


def _ends(found: list[tuple[str, int]], names: tuple[str, ...]) -> list[int]:
    return [_FOR_EVER if not number and name in _ZERO_IS_NONE else number for name, number in found if name in names]


def _begins(found: list[tuple[str, int]]) -> int:
    return min((number for name, number in found if name in _FROM), default=0)


def _message(data: object) -> dict[str, Any] | None:
    # The API has the word of the signing libraries; wallets call it `message`.
    found = (data.get("value") or data.get("message")) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else None


def _fields(message: dict[str, Any], *, depth: int) -> list[tuple[str, int]]:
    """Its fields that are numbers by their names, those of what it contains too."""
    found: list[tuple[str, int]] = []
    for count, (name, value) in enumerate(_walk(message, depth)):
        if count >= _MOST_FIELDS:
            break
        if (number := parse_number(value)) is not None:
            found.append((name, number))
    return found


def _walk(value: object, depth: int) -> Iterator[tuple[str, object]]:
    inner = (
        value.items() if isinstance(value, dict) else (("", one) for one in value) if isinstance(value, list) else ()
    )
    for name, one in inner:
        if not isinstance(one, dict | list):
            yield str(name), one
        elif depth:
            yield from _walk(one, depth - 1)


def _clock(seconds: int) -> str:
    return "after the year 2100" if seconds >= _FOR_EVER else clock(datetime.fromtimestamp(seconds, UTC))
