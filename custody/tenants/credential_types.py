"""App clients, their secrets, and keys that sign requests, as callers see them. Spec 2/2.4, 2.5, decisions 9."""

from datetime import datetime
from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.app_clients import AppClient, AppClientId
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.kit.shapes import DisplayName

# A retiring one serves until its time; from then on it is as good as revoked.
Status = Literal["active", "retiring", "revoked"]


class AppClientAbsent(NotFound):
    """There is no such app client."""


class AppClientTaken(Conflict):
    """An app client with this id already exists."""


class TooManyAppClients(Conflict):
    """A tenant has at most 50 app clients."""


class AppSecretAbsent(NotFound):
    """There is no such secret that still works."""


class TooManyAppSecrets(Conflict):
    """An app client has at most 10 secrets that work; revoke one first."""


class SigningKeyAbsent(NotFound):
    """There is no such key that still works."""


class TooManySigningKeys(Conflict):
    """A tenant has at most 10 request-signing keys that work; revoke one first."""


class OneOrSeveral(Invalid):
    """Send one app client, or several in appClients, and not both."""


class AppClientsBody(AppClient, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """One app client, or several in `appClients`."""

    # Empty: none is sent but in `app_clients`.
    id: AppClientId = ""
    name: DisplayName = ""
    app_clients: Annotated[tuple[AppClient, ...], Meta(max_length=50)] | UnsetType = UNSET

    def named(self) -> tuple[AppClient, ...]:
        """The clients, whichever way they are sent."""
        if self.app_clients is UNSET:
            return (self._alone(),)
        if self != AppClientsBody(app_clients=self.app_clients):
            raise OneOrSeveral(fields=["appClients"])
        return self.app_clients

    def _alone(self) -> AppClient:
        for field in ("id", "name"):
            if not getattr(self, field):
                raise Invalid(f"{field}: an app client needs it.", code="missing_field", fields=[field])
        return AppClient(**{field: getattr(self, field) for field in AppClient.__struct_fields__})


class StoredAppClient(AppClient, frozen=True, rename="camel", kw_only=True):
    """An app client with the public id that users' programs name it by: `<tenant>/<client>`."""

    app_id: str
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, tenant: str, client: AppClient, created_at: str, updated_at: str) -> Self:
        """A client of a tenant, as it is stored since then."""
        given = {field: getattr(client, field) for field in AppClient.__struct_fields__}
        return cls(app_id=f"{tenant}/{client.id}", created_at=created_at, updated_at=updated_at, **given)


class AppSecret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is told of a secret; the secret itself is shown once, when it is made."""

    id: str
    prefix: str
    status: Status
    created_at: str
    retires_at: str | None
    app_id: str


class NewAppSecret(AppSecret, frozen=True, rename="camel", kw_only=True):
    """A secret, shown this once."""

    app_secret: str

    def __repr__(self) -> str:
        return "NewAppSecret()"


class SigningKey(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is told of a key that signs requests; its secret is shown once, when it is made."""

    id: str
    prefix: str
    status: Status
    created_at: str
    retires_at: str | None


class NewSigningKey(SigningKey, frozen=True, rename="camel", kw_only=True):
    """A key with its secret, shown this once."""

    signing_secret: str

    def __repr__(self) -> str:
        return "NewSigningKey()"


class Deleted(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


def status_of(retires_at: datetime | None, revoked_at: datetime | None, now: datetime) -> Status:
    """The state of a secret or key at a moment."""
    if revoked_at is not None or (retires_at is not None and retires_at <= now):
        return "revoked"
    return "active" if retires_at is None else "retiring"
