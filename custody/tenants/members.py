"""Members of a tenant, named by the operator. Decisions 5."""

from typing import Any

import msgspec

from custody.kit.answers import Outcome
from custody.kit.callers import PlatformCaller
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import PutMember, RemoveMember
from custody.tenants.types import MemberBody, Membership, RemovedMember


async def put(ports: Ports, caller: PlatformCaller, tenant: str, body: MemberBody) -> Any:
    """Make a user a member (201), or give him another role (200); living sessions feel it at once."""
    data = await asked(ports.signer, PutMember(tenant, body.user_id, body.role), caller)
    membership = Membership(data["tenantId"], data["userId"], data["role"], data["createdAt"])
    return data.replayed_or(Outcome(201 if data["added"] else 200, membership))


async def remove(ports: Ports, caller: PlatformCaller, tenant: str, user: str) -> Any:
    """End a membership; the user's sessions no longer reach the tenant."""
    data = await asked(ports.signer, RemoveMember(tenant, user), caller)
    return data.replayed_or(msgspec.convert(data, RemovedMember))
