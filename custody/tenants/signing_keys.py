"""Keys with which a tenant signs its requests; the signer keeps them sealed. Spec 2/2.5, 4.3."""

from typing import Any

import msgspec

from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol import messages
from custody.protocol.client import asked
from custody.tenants.credential_types import Deleted, NewSigningKey


async def create(ports: Ports, caller: SessionCaller) -> NewSigningKey:
    """A new key, shown this once; those before it go on working for seven days."""
    data = await asked(ports.signer, messages.NewSigningKey(), caller)
    return NewSigningKey(
        id=data["id"], prefix=data["prefix"], status="active", created_at=data["createdAt"], retires_at=None,
        signing_secret=data["signingSecret"],
    )  # fmt: skip


async def revoke(ports: Ports, caller: SessionCaller, key: str) -> Any:
    """End a key at once."""
    data = await asked(ports.signer, messages.RevokeSigningKey(key), caller)
    return data.replayed_or(msgspec.convert(data, Deleted))
