"""The one spelling of a receipt, over which it is signed. Normative text: docs/receipts.md. Pure."""

from typing import Any, Final

import msgspec

FORMAT: Final = "custody-receipt-v1"
_LARGEST: Final = 2**53 - 1


class NotCanonical(ValueError):
    """A value that has no one spelling: a fraction, a number that readers round, a key beyond ASCII."""


def canonical(receipt: dict[str, Any]) -> bytes:
    """The bytes that are signed: RFC 8785 for what receipts consist of."""
    _check(receipt)
    return msgspec.json.encode(receipt, order="sorted")


def _check(value: Any) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise NotCanonical
            _check(one)
    elif isinstance(value, list | tuple):
        for one in value:
            _check(one)
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise NotCanonical
