"""Answers of the API about intents, as far as their screen reads them. See `shapes.py`."""

from typing import Any

import msgspec

from words.shapes import PolicyResult


class Intent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A proposal, and what has become of it."""

    id: str
    intent_type: str
    agent_id: str | None
    payload: dict[str, Any]
    digest: str
    status: str
    expires_at: str
    created_at: str
    created_by: str
    created_by_display_name: str | None
    authorized_by: str | None
    authorized_at: str | None
    reason: str | None
    policy_results: list[PolicyResult] | None
    execution_result: dict[str, Any] | None


class IntentPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of intents, newest first."""

    intents: list[Intent]
    total: int
    total_is_estimate: bool = False
