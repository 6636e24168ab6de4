"""While a command is carried out, only the audit actions that it declares may be recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALLOWED: ContextVar[frozenset[str]] = ContextVar("allowed audit actions")


class UndeclaredAction(Exception):
    """An audit action that the command does not declare; nothing is recorded, and nothing is done."""


@contextmanager
def only(actions: frozenset[str]) -> Iterator[None]:
    """Let these be recorded, and no others."""
    token = _ALLOWED.set(actions)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def vet(action: str) -> str:
    """The action, or UndeclaredAction."""
    if action not in _ALLOWED.get(frozenset()):
        raise UndeclaredAction(action)
    return action
