"""Tell a caller what its credential is."""

from api.areas.tenants import credential_store
from custody.kit import clock, jwt, tokens
from custody.kit.callers import (
    AgentCaller,
    AppClientCaller,
    Caller,
    PlatformCaller,
    SessionCaller,
    TenantCaller,
)
from custody.kit.errors import Unauthenticated
from custody.ports import Ports
from custody.tenants.types import Me


class CredentialEnded(Unauthenticated):
    """The credential is not valid."""


async def get(ports: Ports, caller: Caller) -> Me:
    """The credential as it is now; an end that is known only to the database is looked up."""
    if isinstance(caller, AgentCaller):
        expires_at = clock.iso(jwt.expiry_of(caller.proof.value))
        return Me(
            "agent_token", tenant_id=caller.tenant, agent_id=caller.agent, scopes=["agent"], expires_at=expires_at
        )
    if isinstance(caller, SessionCaller):
        return Me(
            "session",
            tenant_id=caller.tenant,
            user_id=caller.user,
            role=caller.role,
            scopes=["session"],
            expires_at=clock.iso(jwt.expiry_of(caller.proof.value)),
        )
    if isinstance(caller, PlatformCaller):
        scopes = list(caller.scopes) if caller.scopes is not None else None
        return Me("platform_key", prefix=caller.key_prefix, scopes=scopes)
    if isinstance(caller, AppClientCaller):
        return await _app_client(ports, caller)
    assert isinstance(caller, TenantCaller)  # noqa: S101 - there is no other kind
    return await _tenant_key(ports, caller)


async def _app_client(ports: Ports, caller: AppClientCaller) -> Me:
    secret = await credential_store.app_secret(ports.pool, tokens.digest(caller.proof.value.rpartition(":")[2]))
    if secret is None:
        raise CredentialEnded
    return Me(
        "app_client",
        tenant_id=caller.tenant,
        client_id=caller.client,
        prefix=secret.prefix,
        expires_at=clock.iso_or_none(secret.retires_at),
    )


async def _tenant_key(ports: Ports, caller: TenantCaller) -> Me:
    key = await credential_store.tenant_key(ports.pool, tokens.digest(caller.proof.value))
    if key is None:
        raise CredentialEnded
    return Me(
        "tenant_key",
        tenant_id=caller.tenant,
        key_id=key.id,
        name=key.name,
        prefix=key.prefix,
        expires_at=clock.iso_or_none(key.retires_at),
    )
