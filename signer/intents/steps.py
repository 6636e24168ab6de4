"""The rows of an intent, as SQL takes them."""

from datetime import datetime
from typing import NamedTuple


class NewRow(NamedTuple):
    """A new intent: the SQL type `intent_row`."""

    id: str
    agent_id: str | None
    incarnation: str | None
    type: str
    resource_type: str | None
    resource_id: str | None
    reference_id: str | None
    payload: str
    digest: bytes
    created_by: str
    created_by_name: str | None
    tx_ids: list[str]
    results: str | None
    answer: bytes | None
    expires_at: datetime
    created_at: datetime
    mac: bytes


class StepRow(NamedTuple):
    """One step of an intent: the SQL type `intent_step`."""

    id: str | None = None
    mac: bytes | None = None
    status: str | None = None
    baseline: str | None = None
    authorized_by: str | None = None
    authorized_at: datetime | None = None
    result: str | None = None
    reason: str | None = None
    next_mac: bytes | None = None
    told: str | None = None
    events: str | None = None


NO_STEP = StepRow()
