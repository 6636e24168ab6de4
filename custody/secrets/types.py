"""Secrets and credential routes as callers see them; a secret's value comes in here and never goes out. Spec 2/4.5."""

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.credentials.types import VALUE, InjectAs, Priority
from custody.kit.errors import Invalid, NotFound
from custody.kit.shapes import AgentId, DisplayName, Uuid
from custody.protocol.messages import SecretValue

Value = Annotated[SecretValue, Meta(extra_json_schema={"writeOnly": True, "format": "password"})]
Description = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*\Z")]
# Only their lengths are bound here. What they may say is told in words by custody.credentials.rules.
HostPattern = Annotated[
    str,
    Meta(
        max_length=260,
        description="A host. `*.example.com` is one or more labels in front; a `*` inside a label stays in it. A port "
        "as `host:port`, else 443.",
    ),
]
PathPattern = Annotated[
    str,
    Meta(
        max_length=1024,
        description="A path, case-sensitive, without a query. A final `/*` matches any rest, also none; another `*` "
        "stays within its segment.",
    ),
]
InjectWay = Annotated[str, Meta(max_length=20, extra_json_schema={"enum": list(get_args(InjectAs))})]
Method = Annotated[str, Meta(max_length=20, description="An HTTP method, or `*` for every one.")]
InjectKey = Annotated[
    str, Meta(max_length=128, description="The header, the query parameter or the top-level body field.")
]
InjectFormat = Annotated[
    str, Meta(max_length=1024, description="What is put there: `{value}` once, with any text around it.")
]
Verdict = Literal["matched", "no_route", "agent_frozen", "tenant_frozen", "secret_deleted", "secret_expired"]


class SecretAbsent(NotFound):
    """There is no such secret."""


class CredentialRouteAbsent(NotFound):
    """There is no such credential route."""


class ValueTooLong(Invalid):
    """value: a secret has at most 64 KiB as UTF-8."""


class BadExpiry(Invalid):
    """expiresAt: give an ISO 8601 time with its zone, such as 2100-01-31T12:00:00Z."""


class SecretOfRouteFixed(Invalid):
    """secretId: a route keeps its secret. Make a new route for the other secret and delete this one."""


class NewSecretBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A secret to keep; its value is never shown again."""

    name: DisplayName
    value: Value
    description: Description | None = None
    expires_at: Annotated[str, Meta(max_length=40, extra_json_schema={"format": "date-time"})] | None = None

    def __repr__(self) -> str:
        return "NewSecretBody()"


class NewValueBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next value of a secret."""

    value: Value

    def __repr__(self) -> str:
        return "NewValueBody()"


class Secret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is known of a secret; `version` rises with each new value."""

    id: str
    name: str
    description: str | None
    version: int
    expires_at: str | None
    created_at: str
    rotated_at: str | None = None


class RotatedSecret(msgspec.Struct, frozen=True, rename="camel"):
    """A secret that has a new value; its routes use it from now on."""

    id: str
    name: str
    version: int
    rotated_at: str


class DeletedSecret(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


class NewCredentialRouteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Where a secret is put into requests; of several routes that match, the one of the highest priority counts."""

    secret_id: Uuid
    host_pattern: HostPattern
    path_pattern: PathPattern = "/*"
    method: Method = "*"
    inject_as: InjectWay
    inject_key: InjectKey
    inject_format: InjectFormat = VALUE
    priority: Priority = 0
    enabled: bool = True


class CredentialRouteChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; what is left out stays as it is. A route keeps its secret."""

    host_pattern: HostPattern | UnsetType = UNSET
    path_pattern: PathPattern | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    inject_as: InjectWay | UnsetType = UNSET
    inject_key: InjectKey | UnsetType = UNSET
    inject_format: InjectFormat | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    # Known only so that it is refused with a reason.
    secret_id: Annotated[Any, Meta(extra_json_schema={"not": {}})] = UNSET


class CredentialRoute(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A credential route of the tenant."""

    id: str
    secret_id: str
    host_pattern: str
    path_pattern: str
    method: str
    inject_as: str
    inject_key: str
    inject_format: str
    priority: int
    enabled: bool
    created_at: str


class DeletedCredentialRoute(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


class ExplainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A request that an agent would send through the proxy."""

    agent_id: AgentId
    method: Annotated[str, Meta(min_length=1, max_length=20, pattern=r"^[A-Za-z]+\Z")]
    url: Annotated[str, Meta(min_length=1, max_length=32_768, description="https://host/path; the query is ignored.")]


class Considered(msgspec.Struct, frozen=True, rename="camel"):
    """One route in the order in which routes are tried, and why it is or is not the one."""

    route_id: str
    reason: str


class Explanation(msgspec.Struct, frozen=True):
    """The route that the request falls to, and whether the proxy would let it pass (`matched`) or why not."""

    matched: CredentialRoute | None
    reason: Verdict
    considered: list[Considered]
