"""Identifiers."""

import uuid


def new_uuid() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())  # noqa: TID251 - this is the place
