"""The envelope for a receiver and for the stream of events: of one event always the same bytes."""

from typing import Annotated

import msgspec

from custody.kit.described import Instant, described


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """One event as it leaves."""

    id: Annotated[str, described("The event's own id, the same in every delivery of it.")]
    event: Annotated[str, described("The name of the event.")]
    tenant_id: Annotated[str, described("The tenant.")]
    agent_id: Annotated[str | None, described("The agent, if one is concerned.")]
    timestamp: Annotated[Instant, described("Time of the event.")]
    data: Annotated[msgspec.Raw, described("What happened.")]

    def __repr__(self) -> str:
        return f"Envelope({self.id})"


def envelope(*, id: str, event: str, tenant: str, agent: str | None, timestamp: str, data: str) -> bytes:
    """Write the envelope of an event whose `data` is the JSON text that was stored with it.

    A retry is signed again over these bytes, so nothing here may depend on when or by whom it is made.
    """
    return msgspec.json.encode(Envelope(id, event, tenant, agent, timestamp, msgspec.Raw(data.encode())))
