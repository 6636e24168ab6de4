"""Members of a tenant, named by the operator."""

from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.ports import Ports
from custody.protocol.identity.tenants import Membership, PutMember
from custody.tenants.types import MemberBody


async def put(
    ports: Ports, caller: PlatformCaller, tenant: str, body: MemberBody
) -> Answered[Created[Membership] | Membership]:
    """Make a user a member, or give a member another role; living sessions feel it at once."""
    answered = await ports.workers.ask(PutMember(tenant, body.user_id, body.role, body.force), caller)
    return answered.to(lambda saved: Created(saved.membership) if saved.added else saved.membership)
