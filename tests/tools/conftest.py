"""Fixtures of these tests alone."""

from tests.fixtures.mcp import mcp

__all__ = ["mcp"]
