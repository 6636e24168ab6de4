"""Fixtures of a deployment with a proxy and an upstream behind it."""

from tests.fixtures.proxied import impatient, keyless, proxied, routed, upstream
from tests.proxy.changes import told

__all__ = ("impatient", "keyless", "proxied", "routed", "told", "upstream")
