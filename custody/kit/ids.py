"""Identifiers."""

import re
import uuid

_OURS = uuid.UUID("5c5b2f0e-6f0f-4b5e-9a57-3f1d0f5c9f0b")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_uuid() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())  # noqa: TID251 - this is the place


def uuid_of(*parts: str) -> str:
    """The UUID (version 5) that these parts always give; no part has a line feed in it."""
    return str(uuid.uuid5(_OURS, "\n".join(parts)))


def is_uuid(text: str) -> bool:
    """Say whether this is a UUID, as we write them."""
    return _UUID.fullmatch(text) is not None
