"""People whom the operator names: made before they ever signed in, and found by an id of the operator's own."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.addresses import BadEmailAddress
from custody.identity.provisioning import EXTERNAL_ID_PATTERN, BadCustomMetadata, BadExternalId
from custody.identity.scopes import USER_WRITE
from custody.kit.described import Id, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import DisplayName, TenantId, Uuid
from custody.protocol.command import PLATFORM_KEY, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.refusals import TenantAbsent

# Loose on purpose: what is wrong with one is said in a sentence of its own.
EmailWords = Annotated[str, Meta(min_length=3, max_length=254)]
ExternalIdWords = Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema={"pattern": EXTERNAL_ID_PATTERN})]
NamedRole = Literal["owner", "admin", "member"]


class NamedUser(msgspec.Struct, frozen=True, rename="camel"):
    """The user, and whether they were made now."""

    user_id: Annotated[Id, described("The user.")]
    is_new: Annotated[bool, described("True if this call created the user.")]
    tenant_id: Annotated[str | None, described("The tenant, if one was named.")]
    wallet_external_id: Annotated[str | None, described("Their wallet's external id in it, if one was named.")]


class AssignedExternalId(msgspec.Struct, frozen=True, rename="camel"):
    """A user's external id in a tenant."""

    user_id: Annotated[Id, described("The user.")]
    tenant_id: Annotated[str, described("The tenant.")]
    wallet_external_id: Annotated[str, described("Their wallet's external id in the tenant.")]


class Connected(msgspec.Struct, frozen=True):
    """The user of an external id, whether they were made now, and whether the id was given to them now."""

    user: str
    tenant: str
    external_id: str
    is_new: bool
    created_external_id: bool


class ActedOn(msgspec.Struct, frozen=True):
    """The user whom an act was about."""

    user: str


class DeletedUser(msgspec.Struct, frozen=True):
    """The deleted user."""

    deleted: Annotated[Id, described("The user's id.")]


@command(
    "identity",
    proofs=PLATFORM_KEY,
    scope=USER_WRITE,
    audit=("user.created", "membership.added", "user.external_id_assigned"),
)
@refuses(BadCustomMetadata, BadEmailAddress, BadExternalId, refusals.ExternalIdNeedsTenant, refusals.ExternalIdSet)
@refuses(refusals.ExternalIdTaken, QuotaExceeded, TenantAbsent)
class CreateUser(Command[NamedUser], frozen=True, kw_only=True):
    """Find the user of an address, or make them; with a tenant make them its member, if they are none.

    A user, membership or external id that is there is never changed.
    """

    email: EmailWords
    email_verified: bool = False
    name: DisplayName | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    tenant: TenantId | None = None
    external_id: ExternalIdWords | None = None

    def __repr__(self) -> str:
        return "CreateUser()"


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("membership.added", "user.external_id_assigned"))
@refuses(BadExternalId, refusals.ExternalIdSet, refusals.ExternalIdTaken, QuotaExceeded, TenantAbsent)
@refuses(refusals.UserAbsent)
class AssignExternalId(Command[AssignedExternalId], frozen=True):
    """Give a user's wallet its external id in a tenant, once and for all; they become its member, if they are none."""

    tenant: TenantId
    user: Uuid
    external_id: ExternalIdWords


@command(
    "identity",
    proofs=PLATFORM_KEY,
    scope=USER_WRITE,
    audit=("user.created", "user.email_added", "membership.added", "user.external_id_assigned"),
)
@refuses(BadCustomMetadata, BadEmailAddress, BadExternalId, refusals.ExternalIdSet, refusals.ExternalIdTaken)
@refuses(QuotaExceeded, TenantAbsent)
class ConnectOrCreateUser(Command[Connected], frozen=True, kw_only=True):
    """Find the user of an external id; else give it to the user of the address, who is made if there is none.

    A user who cannot sign in yet gets the address. Otherwise what is there is never changed.
    """

    tenant: TenantId
    external_id: ExternalIdWords
    email: EmailWords | None = None
    email_verified: bool = False
    name: DisplayName | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    role: NamedRole = "member"

    def __repr__(self) -> str:
        return "ConnectOrCreateUser()"


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("user.changed",))
@refuses(BadCustomMetadata, refusals.UserAbsent)
class ChangeUser(Command[ActedOn], frozen=True, kw_only=True):
    """Change what is shown of a user; what is left out stays as it is."""

    user: Uuid
    name: DisplayName | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"ChangeUser({self.user})"


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("user.deactivated",))
@refuses(refusals.LastOwner, refusals.UserAbsent)
class DeactivateUser(Command[ActedOn], frozen=True):
    """Let a user in nowhere any more and end their sessions; the last owner of a tenant only by force."""

    user: Uuid
    force: bool = False


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("user.reactivated",))
@refuses(refusals.UserAbsent)
class ReactivateUser(Command[ActedOn], frozen=True):
    """Let a user sign in again; what ended stays ended."""

    user: Uuid


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("user.deleted",))
@refuses(refusals.LastOwner, refusals.UserAbsent, refusals.UserActive, refusals.UserHasTenant)
class DeleteUser(Command[DeletedUser], frozen=True):
    """Delete a deactivated user who has no own tenant any more; the last owner of a tenant only by force."""

    user: Uuid
    force: bool = False
