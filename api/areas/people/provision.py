"""Make people known before they ever sign in; identity decides, and looks at everything again."""

from api.areas.people import user_store
from api.areas.people.user_types import ConnectBody, ConnectedUser, ExternalIdBody, NewUserBody, PlatformUserAbsent
from custody.identity.addresses import normalised_email
from custody.identity.provisioning import external_id, metadata_text
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.ports import Ports
from custody.protocol.identity.refusals import ExternalIdNeedsTenant
from custody.protocol.identity.users import (
    AssignedExternalId,
    AssignExternalId,
    ConnectOrCreateUser,
    CreateUser,
    NamedUser,
)


async def create(ports: Ports, caller: PlatformCaller, body: NewUserBody) -> Answered[Created[NamedUser] | NamedUser]:
    """The user of an address, who is made if there is none."""
    named = body.named
    if named is not None and body.tenant_id is None:
        raise ExternalIdNeedsTenant(fields=["tenantId"])
    metadata_text(body.custom_metadata)
    message = CreateUser(
        email=normalised_email(body.email),
        email_verified=body.email_verified,
        name=body.name,
        metadata=body.custom_metadata,
        tenant=body.tenant_id,
        external_id=external_id(named) if named is not None else None,
    )
    answered = await ports.workers.ask(message, caller)
    return answered.to(lambda user: Created(user) if user.is_new else user)


async def assign(ports: Ports, caller: PlatformCaller, user: str, body: ExternalIdBody) -> Answered[AssignedExternalId]:
    """Give a user an external id in a tenant."""
    return await ports.workers.ask(AssignExternalId(body.tenant_id, user, external_id(body.needed)), caller)


async def connect_or_create(
    ports: Ports, caller: PlatformCaller, body: ConnectBody
) -> Answered[Created[ConnectedUser] | ConnectedUser]:
    """The user of an external id, who is found or made; as they are when the answer is given."""
    metadata_text(body.custom_metadata)
    message = ConnectOrCreateUser(
        tenant=body.tenant_id,
        external_id=external_id(body.needed),
        email=normalised_email(body.email) if body.email is not None else None,
        email_verified=body.email_verified,
        name=body.name,
        metadata=body.custom_metadata,
        role=body.role,
    )
    answered = await ports.workers.ask(message, caller)
    connected = answered.answer
    user = await user_store.get(ports.pool, connected.user)
    if user is None:
        raise PlatformUserAbsent
    shown = ConnectedUser(
        connected.user,
        connected.is_new,
        connected.created_external_id,
        connected.tenant,
        connected.external_id,
        user,
    )
    return answered.to(lambda _: Created(shown) if connected.is_new else shown)
