"""App clients, their secrets, and keys that sign requests, as callers see them."""

from datetime import datetime
from typing import Annotated, ClassVar, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.app_clients import AppClient, AppClientId
from custody.kit.described import InContract, Instant, described
from custody.kit.errors import Invalid
from custody.kit.shapes import DisplayName
from custody.protocol.identity.api_keys import OVERLAP_SECONDS, KeyName, Overlap
from custody.protocol.identity.credentials import Status


class NewApiKeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The name of a new API key, and the overlap of the active one with it."""

    overlap_seconds: Overlap = OVERLAP_SECONDS
    name: KeyName = None


class RevokeApiKeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The confirmation for revoking a last key."""

    force: Annotated[bool, described("Revoke it even if the tenant is left without an active key.")] = False


class MissingField(Invalid):
    """A required field is missing; the sentence names it."""


class OneOrSeveral(Invalid):
    """Send one app client, or several in appClients, but not both."""


class AppClientList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Several app clients at once."""

    app_clients: Annotated[tuple[AppClient, ...], Meta(max_length=50), described("The app clients.")]


class AppClientsBody(AppClient, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """One app client, or several in `appClients`."""

    contract: ClassVar = InContract(one_of=(AppClient, AppClientList))
    # Empty: none is sent but in `app_clients`.
    id: Annotated[AppClientId, described("The client's id, unless `appClients` is sent.")] = ""
    name: Annotated[DisplayName, described("A name for people, unless `appClients` is sent.")] = ""
    app_clients: Annotated[
        Annotated[tuple[AppClient, ...], Meta(max_length=50)] | UnsetType,
        described("Several clients at once, instead of the other fields."),
    ] = UNSET

    def clients(self) -> tuple[AppClient, ...]:
        """The clients, whichever way they are sent."""
        if self.app_clients is UNSET:
            return (self._alone(),)
        if self != AppClientsBody(app_clients=self.app_clients):
            raise OneOrSeveral(fields=["appClients"])
        return self.app_clients

    def _alone(self) -> AppClient:
        for field in ("id", "name"):
            if not getattr(self, field):
                raise MissingField(f"{field}: required.", fields=[field])
        return AppClient(**{field: getattr(self, field) for field in AppClient.__struct_fields__})


class StoredAppClient(AppClient, frozen=True, rename="camel", kw_only=True):
    """An app client with its public id, `<tenant>/<client>`."""

    app_id: Annotated[str, described("The public id, `<tenant>/<client>`, for `X-Service-App-Id`.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    updated_at: Annotated[Instant, described("Time of the last change.")]

    @classmethod
    def of(cls, tenant: str, client: AppClient, created_at: str, updated_at: str) -> Self:
        """A client of a tenant, as it is stored since then."""
        given = {field: getattr(client, field) for field in AppClient.__struct_fields__}
        return cls(app_id=f"{tenant}/{client.id}", created_at=created_at, updated_at=updated_at, **given)


def status_of(retires_at: datetime | None, revoked_at: datetime | None, now: datetime) -> Status:
    """The state of a secret or key at a moment."""
    if revoked_at is not None or (retires_at is not None and retires_at <= now):
        return "revoked"
    return "active" if retires_at is None else "retiring"
