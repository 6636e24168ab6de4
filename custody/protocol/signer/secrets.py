"""Secrets, and the credential routes that inject them."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.credentials.token_exchange import TokenExchange
from custody.credentials.types import AlsoInjected, RouteAgents, RouteFields
from custody.identity.roles import BUILDERS
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import DisplayName, Uuid
from custody.protocol.command import AGENT, TENANT, Command, command

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
    created_at: Annotated[Instant, described("Time of creation.")]


class DeletedCredentialRoute(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.created",))
class CreateSecret(Command[Secret], frozen=True):
    """Seal a secret under a name. No answer but that to `RevealForRoute` holds the value again."""

    name: DisplayName
    value: SecretValue
    description: str | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return "CreateSecret()"


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.rotated", "secret.updated"))
class RotateSecret(Command[RotatedSecret], frozen=True):
    """Seal the next value in place of the last one. `rotate`: which of the two routes was called."""

    secret: Uuid
    value: SecretValue
    rotate: bool

    def __repr__(self) -> str:
        return f"RotateSecret({self.secret})"


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("secret.deleted",))
class DeleteSecret(Command[DeletedSecret], frozen=True):
    """Destroy a secret's value and keep its row; routes that name it then fail."""

    secret: Uuid


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.created",))
class CreateCredentialRoute(Command[CredentialRoute], frozen=True):
    """Make a route, sealed by the signer, because it decides where a secret goes."""

    secret: Uuid | None
    fields: RouteFields


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.changed",))
class ChangeCredentialRoute(Command[CredentialRoute], frozen=True):
    """Change the fields that `changes` names, spelled as in `RouteFields`; the secret of a route never changes."""

    route: Uuid
    changes: dict[str, Any]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("credential_route.deleted",))
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


@command("signer", senders=("proxy",), proofs=AGENT, repeatable=True, replays_itself=True)
class RevealForRoute(Command[Revealed], frozen=True):
    """Open the value that one credential route of the agent's tenant injects."""

    route: Uuid
