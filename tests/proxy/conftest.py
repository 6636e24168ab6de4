"""Fixtures of a deployment with a proxy and an upstream behind it."""

from tests.proxy.changes import is_told
from tests.proxy.paying import paying

__all__ = ("is_told", "paying")
