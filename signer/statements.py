"""Contents of the MACs of queued and of signed orders."""

from datetime import datetime
from typing import Any

from custody.kit import clock
from custody.worker.sealing import fields

APPROVAL_MAC = "approval-mac"


def approval_content(  # noqa: PLR0913, PLR0917 - everything that must not change while it waits
    tenant: str,
    agent: str,
    incarnation: str,
    tx_id: str,
    approval_id: str,
    digest: bytes,
    authorization: str | None,
    times: tuple[datetime, datetime] | None = None,
) -> bytes:
    """Encode what the MAC of a queued order is made over; `times`: since when it waits, when it is signed by itself."""
    whole = fields("approval", tenant, agent, incarnation, tx_id, approval_id, digest, *_fields_of(authorization))
    return whole if times is None else whole + fields("release", *map(clock.unix_microseconds, times))


def times_of(row: Any) -> tuple[datetime, datetime] | None:
    """Since when an item waits, and when it is signed by itself, as its row says it; None where a person decides."""
    return None if row["release_at"] is None else (row["waits_since"], row["release_at"])


def _fields_of(authorization: str | None) -> tuple[str, ...]:
    """Only where there is one: what was made before there were any stays as it is."""
    return () if authorization is None else ("authorization", authorization)


def signed_content(  # noqa: PLR0913 - everything that a receipt states
    *,
    tenant: str,
    agent: str,
    incarnation: str,
    tx_id: str,
    kind: str,
    chain_id: int | None,
    to_address: str | None,
    value: str | None,
    reference_id: str | None,
    replaces_tx_id: str | None,
    digest: bytes,
    tx_hash: str | None,
    signature: str,
    policy_version: int,
    policy_hash: bytes,
    effects: str,
    policy_results: str,
    budgets: str,
    approval: str | None,
    by: str,
    votes: str | None = None,
    authorization: str | None = None,
) -> bytes:
    """Encode what a signed order's MAC is made over; `by` is who acted, as the audit row names them."""
    # Appended only where there are some: what was signed before there were votes has the content that it had.
    voted = fields("votes", votes) if votes is not None else b""
    return (
        fields(
            "signed",
            tenant,
            agent,
            incarnation,
            tx_id,
            kind,
            "" if chain_id is None else chain_id,
            to_address or "",
            value or "",
            reference_id or "",
            replaces_tx_id or "",
            digest,
            tx_hash or "",
            signature,
            policy_version,
            policy_hash,
            effects,
            policy_results,
            budgets,
            approval or "",
            by,
        )
        + voted
        + fields(*_fields_of(authorization))
    )
