"""A tenant's API keys: made and ended by its people, or by the operator."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.scopes import TENANT_WRITE
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import DisplayName, TenantId, Uuid
from custody.protocol.command import PLATFORM_KEY, SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.credentials import Status
from custody.protocol.refusals import AdministrationMoving, TenantAbsent

MAX_OVERLAP_SECONDS = 604_800
OVERLAP_SECONDS = 86_400
Overlap = Annotated[
    int,
    Meta(ge=0, le=MAX_OVERLAP_SECONDS),
    described("Overlap of the active key with the new one; with 0 it ends at once.", unit="s"),
]
KeyName = Annotated[DisplayName | None, described("A name for people; null if it has none.")]


class ApiKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An API key of a tenant without the key itself, which is returned only at creation."""

    id: Annotated[Id, described("The key's id, by which it is revoked.")]
    name: KeyName
    prefix: Annotated[str, described("First letters of the key; audit rows name it as `tenant-key:<prefix>`.")]
    status: Annotated[Status, described("State of the key; `retiring`: a newer key replaced it.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    retires_at: Annotated[Instant | None, described("End of its overlap, if it retires.")]
    last_used_at: Annotated[Instant | None, described("Time of the last use, at most a minute behind.")]


class NewApiKey(ApiKey, frozen=True, rename="camel", kw_only=True):
    """A new API key; the key itself is returned only here."""

    api_key: Annotated[str, described("The key, for `X-Service-Key`; it is returned only here.")]

    def __repr__(self) -> str:
        return "NewApiKey()"


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("api_key.created",))
@refuses(AdministrationMoving, refusals.TooManyApiKeys)
class CreateApiKey(Command[NewApiKey], frozen=True):
    """Make an API key for the caller's tenant, shown once; the active one serves for the overlap."""

    overlap_seconds: Overlap = OVERLAP_SECONDS
    name: KeyName = None


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("api_key.revoked",))
@refuses(AdministrationMoving, refusals.ApiKeyAbsent, refusals.LastApiKey)
class RevokeApiKey(Command[ApiKey], frozen=True):
    """Revoke an API key of the caller's tenant at once; the last one only by force."""

    key: Uuid
    force: bool = False


@command("identity", proofs=PLATFORM_KEY, scope=TENANT_WRITE, audit=("api_key.created",))
@refuses(TenantAbsent, refusals.TooManyApiKeys)
class CreateApiKeyIn(Command[NewApiKey], frozen=True):
    """Make an API key for any tenant, shown once; the active one serves for the overlap."""

    tenant: TenantId
    overlap_seconds: Overlap = OVERLAP_SECONDS
    name: KeyName = None


@command("identity", proofs=PLATFORM_KEY, scope=TENANT_WRITE, audit=("api_key.revoked",))
@refuses(refusals.ApiKeyAbsent, refusals.LastApiKey, TenantAbsent)
class RevokeApiKeyIn(Command[ApiKey], frozen=True):
    """Revoke an API key of any tenant at once; the last one only by force."""

    tenant: TenantId
    key: Uuid
    force: bool = False
