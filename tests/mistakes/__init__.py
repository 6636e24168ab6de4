"""Mistakes that mypy must find: it reports each `type: ignore` here that hides none. No test runs this."""
