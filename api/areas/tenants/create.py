"""Make and remove tenants."""

from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller, SessionCaller
from custody.ports import Ports
from custody.protocol.identity.tenants import CreateTenant, MadeTenant
from custody.tenants.types import CreatedTenant, NewTenantBody, PlatformTenantBody, RegisteredTenant


async def register(
    ports: Ports, caller: PlatformCaller | SessionCaller, body: NewTenantBody
) -> Answered[RegisteredTenant]:
    """Make a tenant that brings its own key; a person who asks becomes its owner."""
    message = CreateTenant(body.id, body.name, body.webhook_url, body.api_key_hash)
    answered = await ports.workers.ask(message, caller)
    return answered.to(lambda made: RegisteredTenant(made.id, made.name, made.api_key_hash, made.created_at))


async def create(ports: Ports, caller: PlatformCaller, body: PlatformTenantBody) -> Answered[CreatedTenant]:
    """Make a tenant and its API key, which is shown this once."""
    message = CreateTenant(body.id, body.name, body.webhook_url)
    answered = await ports.workers.ask(message, caller)
    return answered.to(_with_key)


def _with_key(made: MadeTenant) -> CreatedTenant:
    # It was asked for without a key, so the worker made one.
    assert made.api_key is not None  # noqa: S101
    return CreatedTenant(made.id, made.name, made.api_key, made.created_at)
