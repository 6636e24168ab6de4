"""JSON that strangers signed or serve, read strictly: a key given twice, or what is no JSON, is refused. Pure."""

import json  # noqa: TID251 - only it shows duplicate keys
from typing import Any, NoReturn

import msgspec


class NotStrict(Exception):
    """Not a JSON object, or one that two readers could understand differently."""


def read_object(content: bytes) -> dict[str, Any]:
    """The object; NotStrict for anything else. What it holds may be of any type, floats finite."""
    try:
        # It refuses half characters, which nothing could keep or compare.
        msgspec.json.decode(content)
        document = json.loads(content, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_finite)
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise NotStrict from None
    if not isinstance(document, dict):
        raise NotStrict
    return document


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        raise ValueError
    return found


def _constant(_name: str) -> NoReturn:
    """NaN and Infinity are no JSON."""
    raise ValueError


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number
