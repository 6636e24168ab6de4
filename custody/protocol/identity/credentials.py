"""App clients, request-signing keys and platform keys."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.identity.app_clients import InvalidAppClient
from custody.identity.roles import ANYBODY
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Digest, DisplayName, Uuid
from custody.protocol.command import AGENT, PLATFORM_KEY, SESSION, TENANT, Command, command, refuses
from custody.protocol.common import Resealed
from custody.protocol.identity import refusals
from custody.protocol.refusals import AdministrationMoving

# A retiring one serves until its time; from then on it is as good as revoked.
Status = Literal["active", "retiring", "revoked"]


class AppClientTimes(msgspec.Struct, frozen=True):
    """The times of an app client's creation and last change."""

    id: str
    created_at: str
    updated_at: str


class StoredAppClients(msgspec.Struct, frozen=True):
    """The times of the app clients that were named, in their order; the rest is as it was sent."""

    clients: list[AppClientTimes]


class AppSecret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A secret of an app client without its value, which is returned only at creation."""

    id: Annotated[Id, described("The secret's id.")]
    prefix: Annotated[str, described("First letters of the secret, to tell it from others.")]
    status: Annotated[Status, described("State of the credential.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    retires_at: Annotated[Instant | None, described("End of its overlap, if it retires.")]
    app_id: Annotated[str, described("The app client's public id, `<tenant>/<client>`.")]


class NewAppSecret(AppSecret, frozen=True, rename="camel", kw_only=True):
    """A new secret; its value is returned only here."""

    app_secret: Annotated[str, described("The secret itself; it is returned only here.")]

    def __repr__(self) -> str:
        return "NewAppSecret()"


class SigningKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A request-signing key without its secret, which is returned only at creation."""

    id: Annotated[Id, described("The key's id, for `X-Service-Signing-Key-Id`.")]
    prefix: Annotated[str, described("First letters of its secret, to tell it from others.")]
    status: Annotated[Status, described("State of the credential.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    retires_at: Annotated[Instant | None, described("End of its overlap, if it retires.")]


class NewSigningKey(SigningKey, frozen=True, rename="camel", kw_only=True):
    """A new key; its secret is returned only here."""

    signing_secret: Annotated[str, described("The secret that signs; it is returned only here.")]

    def __repr__(self) -> str:
        return "NewSigningKey()"


class Deleted(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


class NewPlatformKey(msgspec.Struct, frozen=True):
    """A new platform key; it is shown only here."""

    id: str
    name: str
    prefix: str
    scopes: list[str]
    key: str

    def __repr__(self) -> str:
        return f"NewPlatformKey({self.id})"


class PlatformKey(msgspec.Struct, frozen=True, kw_only=True):
    """A platform key as the operator sees it; that of the key file has neither id nor name.

    Without scopes it may do everything.
    """

    id: str | None
    name: str | None
    prefix: str
    scopes: list[str] | None
    from_file: bool
    created_at: str
    revoked_at: str | None


class PlatformKeys(msgspec.Struct, frozen=True):
    """Platform keys, the newest first."""

    keys: list[PlatformKey]


class EndedForRotation(msgspec.Struct, frozen=True, tag=True):
    """The number of ended rows by table, because only a version before this one had made them."""

    version: int
    ended: dict[str, int]


class SignedBy(msgspec.Struct, frozen=True):
    """The key that made a signature: its id, or where the caller's own secret signs, that secret's digest."""

    key_id: str


@command(
    "identity",
    proofs=SESSION,
    mfa="tenantAdmin",
    audit=("app_client.created", "app_client.changed", "app_client.deleted"),
)
@refuses(AdministrationMoving, refusals.DefaultTaken, InvalidAppClient, refusals.TooManyAppClients)
class PutAppClients(Command[StoredAppClients], frozen=True):
    """Store app clients as documents: only new ones, one by one made or replaced, or the whole list."""

    clients: list[dict[str, Any]]
    mode: Literal["create", "upsert", "replace_all"]


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("app_client.deleted",))
@refuses(AdministrationMoving, refusals.AppClientAbsent)
class DeleteAppClient(Command[Deleted], frozen=True):
    """Delete an app client with its secrets."""

    client: str


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("app_secret.created",))
@refuses(AdministrationMoving, refusals.AppClientAbsent, refusals.TooManyAppSecrets)
class CreateAppSecret(Command[NewAppSecret], frozen=True):
    """Make a secret, shown once; the one before it serves for another 24 hours."""

    client: str


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("app_secret.revoked",))
@refuses(AdministrationMoving, refusals.AppSecretAbsent)
class RevokeAppSecret(Command[Deleted], frozen=True):
    """Revoke a secret at once."""

    client: str
    secret: Uuid


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("signing_key.created",))
@refuses(AdministrationMoving, refusals.TooManySigningKeys)
class CreateSigningKey(Command[NewSigningKey], frozen=True):
    """Make a request-signing key, shown once; those before it serve for another seven days."""


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("signing_key.revoked",))
@refuses(AdministrationMoving, refusals.SigningKeyAbsent)
class RevokeSigningKey(Command[Deleted], frozen=True):
    """Revoke a request-signing key at once."""

    key: Uuid


@command("identity", proofs=TENANT | AGENT | PLATFORM_KEY, roles=ANYBODY, bound=True, replays_itself=True)
class CheckRequestSignature(Command[SignedBy], frozen=True):
    """Check that `X-Service-Signature` fits the request and was not used before; this uses it up."""

    method: str
    path: str
    timestamp: str | None
    expires_at: str | None
    idempotency_key: str
    body_sha256: Digest
    signature: Annotated[str, Meta(max_length=1024)]
    key_id: str | None = None
    signer_id: str | None = None

    def __repr__(self) -> str:
        return "CheckRequestSignature()"


@command("identity", senders=("operator",), proofs=PLATFORM_KEY, audit=("platform_key.created",))
class CreatePlatformKey(Command[NewPlatformKey], frozen=True):
    """Make a platform key with these scopes alone, shown once."""

    name: DisplayName
    scopes: Annotated[list[str], Meta(min_length=1, max_length=32)]


@command("identity", senders=("operator",), proofs=PLATFORM_KEY, audit=("platform_key.revoked",))
class RevokePlatformKey(Command[Deleted], frozen=True):
    """Revoke a platform key at once; that of the key file can only be changed in the file."""

    key: Uuid


@command("identity", senders=("operator",), proofs=PLATFORM_KEY)
class ListPlatformKeys(Command[PlatformKeys], frozen=True):
    """List all platform keys, without what only their holders know."""


@command("identity", senders=("operator",), proofs=PLATFORM_KEY, audit=("session.ended_for_rotation",))
class RotateIdentity(Command[Resealed | EndedForRotation], frozen=True):
    """Re-seal a batch of identity's rows, or end what an old version is needed for and nobody can make again."""

    act: Literal["step", "end"]
    table: str | None = None
    after: Annotated[list[str], Meta(max_length=8)] | None = None
