"""Secrets and credential routes as callers see them; a secret's value comes in here and never goes out."""

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.credentials.payment_routes import MaxPerCall, PayTo, Schemes
from custody.credentials.prices import MicroUsd, TokenPrices
from custody.credentials.token_exchange import TokenExchange
from custody.credentials.types import VALUE, AlsoInjected, InjectAs, Priority, RouteAgents
from custody.kit.described import Id, described
from custody.kit.shapes import AgentId, DisplayName, Uuid
from custody.protocol.signer.secrets import CredentialRoute, RotatedSecret, Secret, SecretValue

Value = Annotated[SecretValue, Meta(extra_json_schema={"writeOnly": True, "format": "password"})]
Description = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*\Z")]
# Only their lengths are bound here. What they may say is told in words by custody.credentials.rules.
HostPattern = Annotated[
    str,
    Meta(
        max_length=260,
        description="A host. `*.example.com` matches one or more labels in front; a `*` inside a label matches within "
        "it. A port as `host:port`, else 443.",
    ),
]
PathPattern = Annotated[
    str,
    Meta(
        max_length=1024,
        description="A path, case-sensitive, without a query. A final `/*` matches any rest, also an empty one; any "
        "other `*` matches within its segment.",
    ),
]
InjectWay = Annotated[str, Meta(max_length=20, extra_json_schema={"enum": list(get_args(InjectAs))})]
Method = Annotated[str, Meta(max_length=20, description="An HTTP method, or `*` for all.")]
InjectKey = Annotated[
    str,
    Meta(
        max_length=128,
        description="The name of the header, query parameter or top-level body field; for `json` a place such as "
        "`/auth/token`, where a step `*` is each item of an array; for `text` the placeholder that the value replaces; "
        "for `awsSigV4` region and service, such as `us-east-1/s3`; for `none` nothing.",
    ),
]
InjectFormat = Annotated[
    str,
    Meta(
        max_length=1024,
        description="The inserted text: `{value}` exactly once, with any text around it. For `basic` it is user and "
        "password, such as `x-access-token:{value}`, before they are encoded.",
    ),
]
_AGENTS = "The agents that the route is for; none named: all of the tenant."
_ALSO = "Further secrets that go into the same request."
_EXCHANGE = "The way to an access token that is injected in place of the secret; null: the secret itself."
_KEPT = "True if the agent's own `Authorization`, which is not its token, goes out beside what is injected."
_COST = "Charge for each call, from the agent's budget `usd`; 0: the call is free."
_MOST = "Charge for a metered call before it leaves; what the answer's `usage` leaves of it comes back."
_UNIT = "millionths of a dollar"
_USAGE = "Prices of a metered call's tokens, and the place of their counts in an answer."
_RANGES = "True if a request may ask for a part of an answer (`Range`); otherwise the proxy refuses it."
_PRICE = (
    "The most that one call may cost, by whole asset name, in the asset's smallest unit. Other assets are not paid in."
)
_PAYEES = "The addresses that may be paid."
_SCHEMES = "The schemes of x402 that it pays by; of `upto` the most counts."
_UNKNOWN = "True if an address may be paid that neither `payTo` nor a rule of the agent names."
Verdict = Literal["matched", "no_route", "agent_frozen", "tenant_frozen", "secret_deleted", "secret_expired"]


class NewSecretBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A new secret; its value is never returned again."""

    name: Annotated[DisplayName, described("A name, unique in the tenant.")]
    value: Annotated[Value, described("The secret itself.")]
    description: Annotated[Description | None, described("Your own note.")] = None
    expires_at: Annotated[
        Annotated[str, Meta(max_length=40, extra_json_schema={"format": "date-time"})] | None,
        described("Time when routes stop using it, with its zone."),
    ] = None

    def __repr__(self) -> str:
        return "NewSecretBody()"


class NewValueBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new value of a secret."""

    value: Annotated[Value, described("The new value.")]

    def __repr__(self) -> str:
        return "NewValueBody()"


SecretWarnings = Annotated[
    list[str] | UnsetType, described("Sentences about a value that is odd; absent where nothing is.")
]


class StoredSecret(Secret, frozen=True, rename="camel", kw_only=True):
    """A secret that was stored, without its value."""

    warnings: SecretWarnings = UNSET


class StoredValue(RotatedSecret, frozen=True, rename="camel", kw_only=True):
    """A secret with a new value; its routes use it at once."""

    warnings: SecretWarnings = UNSET


class NewCredentialRouteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A place for a secret in requests; if several routes match, the highest priority wins."""

    secret_id: Annotated[Uuid | None, described("The secret to inject; left out for `none`.")] = None
    host_pattern: HostPattern
    path_pattern: PathPattern = "/*"
    method: Method = "*"
    inject_as: Annotated[InjectWay, described("Place of the secret in the request.")]
    inject_key: InjectKey = ""
    inject_format: InjectFormat = VALUE
    priority: Annotated[Priority, described("Of several routes that match, the highest wins.")] = 0
    enabled: Annotated[bool, described("True if the route is used.")] = True
    agents: Annotated[RouteAgents, described(_AGENTS)] = ()
    also_inject: Annotated[AlsoInjected, described(_ALSO)] = ()
    keep_authorization: Annotated[bool, described(_KEPT)] = False
    exchange: Annotated[TokenExchange | None, described(_EXCHANGE)] = None
    ranges: Annotated[bool, described(_RANGES)] = False
    cost_micro_usd: Annotated[MicroUsd, described(_COST, unit=_UNIT)] = 0
    max_micro_usd: Annotated[MicroUsd, described(_MOST, unit=_UNIT)] = 0
    usage: Annotated[TokenPrices | None, described(_USAGE)] = None


class CredentialRouteChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; omitted fields stay as they are. The secret of a route cannot change."""

    host_pattern: HostPattern | UnsetType = UNSET
    path_pattern: PathPattern | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    inject_as: Annotated[InjectWay | UnsetType, described("Place of the secret in the request.")] = UNSET
    inject_key: InjectKey | UnsetType = UNSET
    inject_format: InjectFormat | UnsetType = UNSET
    priority: Annotated[Priority | UnsetType, described("Of several routes that match, the highest wins.")] = UNSET
    enabled: Annotated[bool | UnsetType, described("True if the route is used.")] = UNSET
    agents: Annotated[RouteAgents | UnsetType, described(_AGENTS)] = UNSET
    also_inject: Annotated[AlsoInjected | UnsetType, described(_ALSO)] = UNSET
    keep_authorization: Annotated[bool | UnsetType, described(_KEPT)] = UNSET
    exchange: Annotated[TokenExchange | UnsetType | None, described(_EXCHANGE)] = UNSET
    ranges: Annotated[bool | UnsetType, described(_RANGES)] = UNSET
    cost_micro_usd: Annotated[MicroUsd | UnsetType, described(_COST, unit=_UNIT)] = UNSET
    max_micro_usd: Annotated[MicroUsd | UnsetType, described(_MOST, unit=_UNIT)] = UNSET
    usage: Annotated[TokenPrices | UnsetType | None, described(_USAGE)] = UNSET
    # Known only so that it is refused with a reason.
    secret_id: Annotated[
        Any, Meta(extra_json_schema={"not": {}}), described("Refused: the secret of a route cannot change.")
    ] = UNSET


class NewPaymentRouteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Requests whose price the proxy may pay (402, x402); if several routes match, the highest priority wins."""

    host_pattern: HostPattern
    path_pattern: PathPattern = "/*"
    method: Method = "*"
    priority: Annotated[Priority, described("Of several routes that match, the highest wins.")] = 0
    enabled: Annotated[bool, described("True if the route is used.")] = True
    agents: Annotated[RouteAgents, described(_AGENTS)] = ()
    max_per_call: Annotated[MaxPerCall, described(_PRICE)]
    pay_to: Annotated[PayTo, described(_PAYEES)] = ()
    schemes: Annotated[Schemes, described(_SCHEMES)] = ("exact",)
    allow_unknown_pay_to: Annotated[bool, described(_UNKNOWN)] = False


class PaymentRouteChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; omitted fields stay as they are."""

    host_pattern: HostPattern | UnsetType = UNSET
    path_pattern: PathPattern | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    priority: Annotated[Priority | UnsetType, described("Of several routes that match, the highest wins.")] = UNSET
    enabled: Annotated[bool | UnsetType, described("True if the route is used.")] = UNSET
    agents: Annotated[RouteAgents | UnsetType, described(_AGENTS)] = UNSET
    max_per_call: Annotated[MaxPerCall | UnsetType, described(_PRICE)] = UNSET
    pay_to: Annotated[PayTo | UnsetType, described(_PAYEES)] = UNSET
    schemes: Annotated[Schemes | UnsetType, described(_SCHEMES)] = UNSET
    allow_unknown_pay_to: Annotated[bool | UnsetType, described(_UNKNOWN)] = UNSET


class ExplainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A request that an agent would send through the proxy."""

    agent_id: Annotated[AgentId, described("The agent that would send the request.")]
    method: Annotated[
        str, Meta(min_length=1, max_length=20, pattern=r"^[A-Za-z]+\Z"), described("The request's method.")
    ]
    url: Annotated[
        str, Meta(min_length=1, max_length=32_768, description="Such as `https://host/path`; the query is ignored.")
    ]


class Considered(msgspec.Struct, frozen=True, rename="camel"):
    """One route, in evaluation order, and why it matches or not."""

    route_id: Annotated[Id, described("The route.")]
    reason: Annotated[str, described("Why it matches or not.")]


class Explanation(msgspec.Struct, frozen=True):
    """The route that the request matches, and whether the proxy would forward it (`matched`) or why not."""

    matched: Annotated[CredentialRoute | None, described("The route that would be used, or null.")]
    reason: Annotated[Verdict, described("Verdict: the proxy would forward the request, or the reason why not.")]
    considered: Annotated[list[Considered], described("The routes in the order in which they are tried.")]


class CallableApi(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An API that an agent may call through the proxy, which puts in what the API wants; the agent needs no key."""

    host_pattern: Annotated[str, described("The hosts; a `*` as in routes, and a port as `host:port`, else 443.")]
    path_pattern: Annotated[str, described("The paths; a final `/*` matches any rest.")]
    method: Annotated[str, described("The HTTP method, or `*` for all.")]
    enabled: Annotated[bool, described("False while the agent or its tenant is frozen: the proxy lets nothing out.")]
    cost_micro_usd: Annotated[MicroUsd, described(_COST, unit=_UNIT)]
    max_micro_usd: Annotated[
        MicroUsd, described("Of a metered API: what a call counts at most; the rest comes back.", unit=_UNIT)
    ]
    pays: Annotated[bool, described("True if a payment route is for the same hosts: what they demand may be paid.")]
