"""Tenants, their configuration and members, and what is proven of a caller who only reads."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.identity.app_clients import InvalidAppClient
from custody.identity.mfa import MfaPolicy
from custody.identity.roles import ANYBODY, READERS
from custody.identity.scopes import TENANT_WRITE, USER_WRITE
from custody.kit.described import Id, Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import DisplayName, Role, TenantId, Uuid
from custody.policies.named_tokens import MAX_TOKENS, NamedToken
from custody.protocol.command import DECIDER, PLATFORM_KEY, SESSION, TENANT, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.refusals import AdministrationMoving, TenantAbsent


class MadeTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant that was made; `api_key` only where the worker made it, and only here."""

    id: str
    name: str
    api_key_hash: str
    created_at: str
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"MadeTenant({self.id})"


class StoredConfig(msgspec.Struct, frozen=True):
    """A configuration as it is stored: three texts, and one for each app client."""

    document: str
    judging: str
    clients: list[str]


class SavedConfig(msgspec.Struct, frozen=True):
    """The stored config now; None where it is too long to be kept for a repetition."""

    stored: StoredConfig | None


class NamedTokens(msgspec.Struct, frozen=True):
    """The tokens that have a name in this tenant."""

    tokens: Annotated[list[NamedToken], described("Each token, and what the owners of the tenant call it.")]


class Membership(msgspec.Struct, frozen=True, rename="camel"):
    """A user's role in a tenant."""

    tenant_id: Annotated[str, described("The tenant.")]
    user_id: Annotated[Id, described("The user.")]
    role: Annotated[Role, described("Role in the tenant.")]
    created_at: Annotated[Instant, described("Time of joining the tenant.")]


class SavedMember(msgspec.Struct, frozen=True):
    """A membership, and whether it is new."""

    membership: Membership
    added: bool


class RemovedMember(msgspec.Struct, frozen=True):
    """The removed member."""

    deleted: Annotated[str, described("The user that was removed.")]


class VouchedPlatform(msgspec.Struct, frozen=True, tag=True):
    """The operator, by a platform key; without scopes it may do everything."""

    scopes: list[str] | None


class VouchedSession(msgspec.Struct, frozen=True, tag=True):
    """A person in a tenant, and what it asks of them."""

    tenant: str
    user: str
    role: Role
    mfa: MfaPolicy


class VouchedAppClient(msgspec.Struct, frozen=True, tag=True):
    """An app client of a tenant."""

    tenant: str
    client: str


class VouchedTenant(msgspec.Struct, frozen=True, tag=True):
    """A tenant, by its own key."""

    tenant: str


Vouched = VouchedPlatform | VouchedSession | VouchedAppClient | VouchedTenant


@command("identity", proofs=PLATFORM_KEY | SESSION, roles=ANYBODY, scope=TENANT_WRITE, audit=("tenant.created",))
@refuses(refusals.BadApiKey, refusals.TenantIdReserved, refusals.TenantKeyTaken, refusals.TenantTaken)
class CreateTenant(Command[MadeTenant], frozen=True):
    """Make a tenant; a person who asks becomes its owner.

    `api_key` None: the signer makes one and shows it once; else a raw key, or its SHA-256 in hex.
    """

    id: TenantId
    name: DisplayName
    webhook_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return "CreateTenant()"


@command(
    "identity",
    proofs=DECIDER,
    mfa="tenantAdmin",
    audit=("tenant.config_changed", "app_client.created", "app_client.changed", "app_client.deleted"),
)
@refuses(AdministrationMoving, refusals.AppClientTaken, refusals.BadApprovalConfig, refusals.DefaultTaken)
@refuses(InvalidAppClient, refusals.PersonRequired, refusals.TooManyAppClients)
class PutConfig(Command[SavedConfig], frozen=True):
    """Replace the configuration: the whole document, and apart from it the part that is judged by, which is sealed.

    A part of `authAbuseConfig` absent in `judging`, and `app_clients` None: they stay as they are. Only a person may
    change them.
    """

    document: str
    judging: dict[str, Any]
    app_clients: list[dict[str, Any]] | None = None


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("tenant.tokens_named",))
@refuses(AdministrationMoving, refusals.BadTokens)
class PutTokens(Command[NamedTokens], frozen=True):
    """Replace what the owners call the tenant's tokens. Amounts are judged in raw units, whatever they are called."""

    tokens: Annotated[list[NamedToken], Meta(max_length=MAX_TOKENS)]


@command("identity", proofs=TENANT, roles=READERS, repeatable=True)
class ReadTokens(Command[NamedTokens], frozen=True):
    """Read what the owners call the tenant's tokens, once its seal was checked."""


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("membership.added", "membership.changed"))
@refuses(refusals.LastOwner, QuotaExceeded, TenantAbsent, refusals.UserAbsent)
class PutMember(Command[SavedMember], frozen=True):
    """Make a user a member, or change the role, of the last owner only by force; living sessions follow at once."""

    tenant: TenantId
    user: Uuid
    role: Role
    force: bool = False


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("membership.removed",))
@refuses(refusals.LastOwner, refusals.MemberAbsent, TenantAbsent)
class RemoveMember(Command[RemovedMember], frozen=True):
    """Remove a member, the last owner only by force; the user's sessions no longer reach the tenant."""

    tenant: TenantId
    user: Uuid
    force: bool = False


@command(
    "identity", proofs=TENANT | PLATFORM_KEY, roles=ANYBODY, bound=True, pages=True, repeatable=True, for_item=True
)
class Vouch(Command[Vouched], frozen=True):
    """Tell what is proven of the caller; nothing is done but noting that a tenant's API key is used."""
