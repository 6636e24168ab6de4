"""Tenants' OIDC providers, and the keys of their issuers."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.identity.oidc_provider import MAX_KEY_SET, MAX_PROVIDERS, InvalidOidcProvider
from custody.kit.errors import Conflict
from custody.kit.shapes import ProviderId, TenantId
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving


class ProviderKeysMoved(Conflict):
    """The keys are from another address than the provider's present one."""


class OidcProviderState(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's document, when it was made and changed, when its keys were last fetched, and why not, in a word."""

    document: str
    created_at: str
    updated_at: str
    keys_fetched_at: str | None
    keys_problem: str | None


class StoredOidcProviders(msgspec.Struct, frozen=True):
    """The tenant's providers, in their order."""

    providers: list[OidcProviderState]


class KeptKeys(msgspec.Struct, frozen=True):
    """The outcome for a key set: None where it was taken, else why not, in a word. The former set then stays."""

    problem: str | None


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.oidc_providers_changed",))
@refuses(AdministrationMoving, InvalidOidcProvider)
class PutOidcProviders(Command[StoredOidcProviders], frozen=True):
    """Replace all OIDC providers of the tenant; keys from another address than before are dropped and fetched again."""

    providers: Annotated[list[dict[str, Any]], Meta(max_length=MAX_PROVIDERS)]


@command("identity", senders=("scheduler",))
class PutProviderKeys(Command[KeptKeys], frozen=True, kw_only=True):
    """Keep the key set that was fetched for a provider, or why there is none. Without a tenant: the deployment's own.

    `jwks_uri` is where it was fetched from, which must be the provider's address at this moment.
    """

    tenant: TenantId | None
    provider: ProviderId
    jwks_uri: Annotated[str, Meta(max_length=2048)]
    keys: Annotated[bytes, Meta(max_length=MAX_KEY_SET)] | None = None
    problem: Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[a-z_.]+\Z")] | None = None

    def __repr__(self) -> str:
        return f"PutProviderKeys({self.provider})"
