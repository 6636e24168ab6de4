"""Secrets, and the credential routes that inject them."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.credentials.aws_key import ValueNotForAws
from custody.credentials.prices import MicroUsd, TokenPrices
from custody.credentials.rules import InvalidRoute, ValueNotForHeader, ValueNotForUser
from custody.credentials.token_exchange import TokenExchange, ValueNotForExchange
from custody.credentials.types import AlsoInjected, RouteAgents, RouteFields
from custody.identity.roles import BUILDERS
from custody.kit.described import Id, Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import DisplayName, TenantId, Uuid
from custody.protocol.command import AGENT, TENANT, Command, command, refuses
from custody.protocol.signer import refusals

# Characters; the bound that counts, 64 KiB of UTF-8, is checked where the value is sealed.
SecretValue = Annotated[str, Meta(min_length=1, max_length=65_536)]


class Secret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A secret without its value; `version` rises with each new value."""

    id: Annotated[Id, described("The secret's id.")]
    name: Annotated[str, described("Its name, unique in the tenant.")]
    description: Annotated[str | None, described("Your own note.")]
    version: Annotated[int, described("Rises with each new value.")]
    expires_at: Annotated[Instant | None, described("Time when routes stop using it.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    rotated_at: Annotated[Instant | None, described("Time of its value's last replacement.")] = None


class RotatedSecret(msgspec.Struct, frozen=True, rename="camel"):
    """A secret with a new value; its routes use it at once."""

    id: Annotated[Id, described("The secret's id.")]
    name: Annotated[str, described("Its name.")]
    version: Annotated[int, described("The version of the new value.")]
    rotated_at: Annotated[Instant, described("Time of the replacement.")]


class DeletedSecret(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


class CredentialRoute(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A credential route of the tenant."""

    id: Annotated[Id, described("The route's id.")]
    secret_id: Annotated[Id | None, described("The secret that it injects; null: none.")]
    host_pattern: Annotated[str, described("The hosts it matches.")]
    path_pattern: Annotated[str, described("The paths it matches.")]
    method: Annotated[str, described("The HTTP method it matches, or `*` for all.")]
    inject_as: Annotated[str, described("Place of the secret in the request.")]
    inject_key: Annotated[str, described("The name of the header, query parameter or body field.")]
    inject_format: Annotated[str, described("The inserted text, with `{value}` in it.")]
    priority: Annotated[int, described("Of several that match, the highest wins.")]
    enabled: Annotated[bool, described("True if the route is used.")]
    agents: Annotated[RouteAgents, described("The agents that it is for; none: all of the tenant.")] = ()
    also_inject: Annotated[AlsoInjected, described("Further secrets that go into the same request.")] = ()
    keep_authorization: Annotated[bool, described("True if the agent's own `Authorization` goes out too.")] = False
    exchange: Annotated[
        TokenExchange | None, described("The way to an access token that is injected in place of the secret.")
    ] = None
    ranges: Annotated[bool, described("True if parts of an answer may be asked for.")] = False
    cost_micro_usd: Annotated[MicroUsd, described("Charge for each call.", unit="millionths of a dollar")] = 0
    max_micro_usd: Annotated[
        MicroUsd, described("Charge for a metered call before it leaves.", unit="millionths of a dollar")
    ] = 0
    usage: Annotated[TokenPrices | None, described("Prices of a metered call's tokens; null: it is not metered.")] = (
        None
    )
    created_at: Annotated[Instant, described("Time of creation.")]


class DeletedCredentialRoute(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.created",))
@refuses(refusals.BadDescription, refusals.BadExpiry, refusals.CredentialsMoving, QuotaExceeded)
@refuses(refusals.SecretNameTaken, refusals.ValueTooLong)
class CreateSecret(Command[Secret], frozen=True):
    """Seal a secret under a name. No answer but that to `RevealForRoute` holds the value again."""

    name: DisplayName
    value: SecretValue
    description: str | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return "CreateSecret()"


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.rotated", "secret.updated"))
@refuses(refusals.CredentialsMoving, refusals.SecretAbsent, refusals.ValueTooLong)
@refuses(ValueNotForAws, ValueNotForExchange, ValueNotForHeader, ValueNotForUser)
class RotateSecret(Command[RotatedSecret], frozen=True):
    """Seal the next value in place of the last one. `rotate`: which of the two routes was called."""

    secret: Uuid
    value: SecretValue
    rotate: bool

    def __repr__(self) -> str:
        return f"RotateSecret({self.secret})"


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.deleted",))
@refuses(refusals.CredentialsMoving, refusals.SecretAbsent)
class DeleteSecret(Command[DeletedSecret], frozen=True):
    """Destroy a secret's value and keep its row; routes that name it then fail."""

    secret: Uuid


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.created",))
@refuses(refusals.CredentialsMoving, InvalidRoute, QuotaExceeded, refusals.SecretAbsent, ValueNotForExchange)
@refuses(ValueNotForAws, ValueNotForHeader, ValueNotForUser)
class CreateCredentialRoute(Command[CredentialRoute], frozen=True):
    """Make a route, sealed by the signer, because it decides where a secret goes."""

    secret: Uuid | None
    fields: RouteFields


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.changed",))
@refuses(refusals.CredentialRouteAbsent, refusals.CredentialsMoving, InvalidRoute, refusals.SecretAbsent)
@refuses(refusals.SecretOfRouteFixed, refusals.UnknownRouteField, ValueNotForExchange, ValueNotForHeader)
@refuses(ValueNotForAws, ValueNotForUser)
class ChangeCredentialRoute(Command[CredentialRoute], frozen=True):
    """Change the fields that `changes` names, spelled as in `RouteFields`; the secret of a route never changes."""

    route: Uuid
    changes: dict[str, Any]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.deleted",))
@refuses(refusals.CredentialRouteAbsent, refusals.CredentialsMoving)
class DeleteCredentialRoute(Command[DeletedCredentialRoute], frozen=True):
    """Delete a route."""

    route: Uuid


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The POST that a provider answers with an access token."""

    url: str
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return "TokenRequest()"


class Further(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a further secret of a route."""

    secret_version: int
    value: bytes
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Further({self.secret_version})"


class Revealed(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The answer to `RevealForRoute`: the value, and the route as the signer sealed it, which is what counts."""

    secret_id: str | None
    secret_version: int
    fields: RouteFields
    value: bytes
    expires_at: datetime | None = None
    # In the order in which the route names them.
    also: list[Further] = []
    # In place of the value where the route has an exchange.
    request: TokenRequest | None = None

    def __repr__(self) -> str:
        return f"Revealed({self.secret_id}, {self.secret_version})"


class RefreshBegun(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The request that nobody else sends for as long as the lease lasts."""

    lease: Uuid
    request: TokenRequest

    def __repr__(self) -> str:
        return "RefreshBegun()"


class RefreshEnded(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The end of a refresh: true if a next refresh token was kept."""

    kept: bool


@command("signer", senders=("proxy",), proofs=AGENT, replays_itself=True, audit=("secret.refresh_unknown",))
class BeginRefresh(Command[RefreshBegun], frozen=True):
    """Take the refresh of a route's secret, which one at a time may make."""

    route: Uuid


@command("signer", senders=("proxy",), repeatable=True, audit=("secret.refreshed", "secret.refresh_unknown"))
class EndRefresh(Command[RefreshEnded], frozen=True, kw_only=True):
    """Say how a refresh ended; the lease proves it. `unknown`: nobody knows whether the refresh token was used up."""

    tenant: TenantId
    secret: Uuid
    lease: Uuid
    refresh_token: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    unknown: bool = False

    def __repr__(self) -> str:
        return f"EndRefresh({self.tenant})"


@command("signer", senders=("proxy",), proofs=AGENT, repeatable=True, replays_itself=True)
class RevealForRoute(Command[Revealed], frozen=True):
    """Open the value that one credential route of the agent's tenant injects."""

    route: Uuid
