"""Identifiers."""

import re
import uuid

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_uuid() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())  # noqa: TID251 - this is the place


def is_uuid(text: str) -> bool:
    """Whether this is a UUID, as we write them."""
    return _UUID.fullmatch(text) is not None
