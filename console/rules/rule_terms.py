"""A rule's config while it is put into words. Pure.

A field that is not known here, or not of the kind it should be, is never left out: it is shown as it is stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from words.shapes import TokenFunds
from words.texts.amounts import whole
from words.texts.lines import Line
from words.texts.plain import clip

_VALUE_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200


@dataclass(frozen=True)
class Names:
    """Known tokens, by asset, and the names of addresses (EVM ones in lower case)."""

    tokens: Mapping[str, TokenFunds] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    def address(self, address: str) -> str:
        """An address in full, with whose it is where that is known."""
        name = self.addresses.get(address.lower() if address.startswith("0x") else address)
        return clip(address, NAME_CHARACTERS) + (f"  ({clip(name, NAME_CHARACTERS)})" if name else "")


class Terms:
    """A config from which what is understood is taken; the rest is shown as it is."""

    def __init__(self, config: Mapping[str, Any], names: Names) -> None:
        self._left = dict(config)
        self.names = names

    def text(self, name: str, default: str | None = None) -> str | None:
        """A field that is text; where there is none, the default; None where it is something else."""
        found = self._left.get(name, default)
        if not isinstance(found, str):
            return None
        self._left.pop(name, None)
        return found

    def unread(self, name: str) -> bool:
        """Tell whether a field is there and was not understood."""
        return name in self._left

    def number(self, name: str) -> int | None:
        """A field that is a whole number."""
        return self._left.pop(name) if is_number(self._left.get(name)) else None

    def amount(self, name: str) -> str | None:
        """A field that is an amount in the smallest unit."""
        return self.text(name) if whole(self._left.get(name)) is not None else None

    def items(self, name: str, fits: Callable[[Any], bool]) -> list[Any] | None:
        """A field that is a list in which everything is as it should be."""
        found = self._left.get(name)
        return self._left.pop(name) if isinstance(found, list) and all(fits(item) for item in found) else None

    def table(self, name: str) -> dict[str, Any]:
        """A field that is an object; empty where it is none."""
        return self._left.pop(name) if isinstance(self._left.get(name), dict) else {}

    def rest(self) -> list[Line]:
        """Show the fields that were not understood."""
        return [
            Line(f"also stored, unknown to this console: {clip(name, NAME_CHARACTERS)} = {show(value)}", "warn")
            for name, value in self._left.items()
        ]


def show(value: object) -> str:
    """A value as it is stored."""
    try:
        return clip(msgspec.json.encode(value).decode(), _VALUE_CHARACTERS)
    except (ValueError, TypeError, RecursionError):
        return "a value that cannot be shown"


def is_number(value: object) -> bool:
    """Tell whether it is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: object) -> bool:
    """Tell whether it is text."""
    return isinstance(value, str)
