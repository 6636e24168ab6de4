"""The content of an intent's MAC: all that decides whether and how it is carried out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import msgspec

from custody.kit import clock
from custody.protocol.signer.intent_words import IntentStatus, IntentType
from custody.worker.sealing import fields

INTENT_MAC = "intent-mac"


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """An intent in one of its states."""

    tenant: str
    id: str
    agent: str | None
    incarnation: str | None
    type: IntentType
    payload: str
    digest: bytes
    status: IntentStatus
    created_by: str
    baseline: str | None = None
    authorized_by: str | None = None
    authorized_at: datetime | None = None
    tx_ids: tuple[str, ...] = ()
    expires_at: datetime

    @classmethod
    def of(cls, tenant: str, row: Mapping[str, Any]) -> Self:
        """A row of `intents`."""

        def text(name: str) -> str | None:
            return None if row[name] is None else str(row[name])

        return cls(
            tenant=tenant,
            id=str(row["id"]),
            agent=row["agent_id"],
            incarnation=text("incarnation"),
            type=row["type"],
            payload=row["payload"],
            digest=row["digest"],
            status=row["status"],
            created_by=row["created_by"],
            baseline=row["baseline"],
            authorized_by=text("authorized_by"),
            authorized_at=row["authorized_at"],
            tx_ids=tuple(str(one) for one in row["tx_ids"]),
            expires_at=row["expires_at"],
        )

    @property
    def content(self) -> bytes:
        """The bytes that the MAC is made over."""
        return fields(
            "intent",
            self.tenant,
            self.id,
            self.agent or "",
            self.incarnation or "",
            self.type,
            self.payload,
            self.digest,
            self.status,
            self.created_by,
            self.baseline or "",
            self.authorized_by or "",
            "" if self.authorized_at is None else clock.unix_microseconds(self.authorized_at),
            ",".join(self.tx_ids),
            clock.unix_microseconds(self.expires_at),
        )
