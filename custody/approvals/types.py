"""The approval queue as people see it. Spec 1/2.6, 4.7, decisions 4."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.shapes import Digest, Reason


class Approval(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One item of the queue; `digest` names exactly the order that was shown."""

    id: str
    tx_id: str
    agent_id: str
    agent_name: str
    status: str
    requested_at: str
    resolved_at: str | None
    resolved_by: str | None
    resolved_by_user_id: str | None
    reason: str | None
    expires_at: str | None
    kind: str
    to_address: str | None
    value: str | None
    chain_id: int | None
    tx_status: str
    effects: list[dict[str, Any]]
    policy_results: list[dict[str, Any]]
    digest: str


class ApprovalQuery(msgspec.Struct, frozen=True):
    """Filter and page of the queue."""

    status: Literal["pending", "approved", "rejected", "expired", "all"] = "pending"
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: Annotated[int, Meta(ge=0, le=2**31)] = 0


class ApprovalStats(msgspec.Struct, frozen=True, rename="camel"):
    """The queue in figures; the wait is from request to decision."""

    pending: int
    approved: int
    rejected: int
    expired: int
    total: int
    avg_wait_seconds: float


class ApproveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Optionally the digest of what was seen; another one is refused."""

    digest: Digest | None = None


class DenyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why, for the event; and optionally the digest of what was seen."""

    reason: Reason | None = None
    digest: Digest | None = None


class Approved(msgspec.Struct, frozen=True, rename="camel"):
    """An approval that became a signature; `tx_hash` is null for typed data."""

    approval_id: str
    status: str
    tx_hash: str | None
    resolved_at: str


class ApprovedTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """The same, as the vault route answers it."""

    tx_id: str
    tx_hash: str | None


class Denied(msgspec.Struct, frozen=True, rename="camel"):
    """An approval that was denied."""

    approval_id: str
    status: str
    resolved_at: str
    resolved_by: str


class RejectedTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """The same, as the vault route answers it."""

    tx_id: str
    approval_id: str
    status: str
    resolved_at: str
    resolved_by: str
