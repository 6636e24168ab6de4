"""What a receiver is sent, and what the stream of events carries: of one event always the same bytes. Spec 2/6."""

import msgspec


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """One event as it leaves."""

    id: str
    event: str
    tenant_id: str
    agent_id: str | None
    timestamp: str
    data: msgspec.Raw

    def __repr__(self) -> str:
        return f"Envelope({self.id})"


def envelope(*, id: str, event: str, tenant: str, agent: str | None, timestamp: str, data: str) -> bytes:
    """Write the envelope of an event whose `data` is the JSON text that was stored with it.

    A retry is signed anew over these bytes, so nothing here may depend on when or by whom it is made.
    """
    return msgspec.json.encode(Envelope(id, event, tenant, agent, timestamp, msgspec.Raw(data.encode())))
