"""The operator changes, deactivates and deletes people; identity decides. What is told is the user as they are then."""

from api.areas.people import user_store
from api.areas.people.user_types import ForceBody, PlatformUser, PlatformUserAbsent, UserChangeBody
from custody.identity.provisioning import metadata_text
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.ports import Ports
from custody.protocol.identity.users import ActedOn, ChangeUser, DeactivateUser, ReactivateUser


async def get(ports: Ports, user: str) -> PlatformUser:
    """One user; PlatformUserAbsent if there is none."""
    found = await user_store.get(ports.pool, user)
    if found is None:
        raise PlatformUserAbsent
    return found


async def change(ports: Ports, caller: PlatformCaller, user: str, body: UserChangeBody) -> Answered[PlatformUser]:
    """Change what is shown of a user."""
    if isinstance(body.custom_metadata, dict):
        metadata_text(body.custom_metadata)
    return await _answer(ports, caller, ChangeUser(user=user, name=body.name, metadata=body.custom_metadata))


async def deactivate(ports: Ports, caller: PlatformCaller, user: str, body: ForceBody) -> Answered[PlatformUser]:
    """Let a user in nowhere any more."""
    return await _answer(ports, caller, DeactivateUser(user, body.force))


async def reactivate(ports: Ports, caller: PlatformCaller, user: str) -> Answered[PlatformUser]:
    """Let a user sign in again."""
    return await _answer(ports, caller, ReactivateUser(user))


async def _answer(
    ports: Ports, caller: PlatformCaller, message: ChangeUser | DeactivateUser | ReactivateUser
) -> Answered[PlatformUser]:
    answered: Answered[ActedOn] = await ports.workers.ask(message, caller)
    return Answered(await get(ports, message.user), answered.replayed)
