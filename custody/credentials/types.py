"""A credential route as everybody knows it: which secret goes where, and how it is put in."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.credentials.prices import MicroUsd, TokenPrices
from custody.credentials.token_exchange import TokenExchange
from custody.kit.described import described
from custody.kit.shapes import AgentId, Uuid

VALUE = "{value}"

InjectAs = Literal["header", "basic", "query", "body", "json", "text", "awsSigV4", "none"]
MAX_ROUTE_AGENTS = 50
MAX_ALSO_INJECTED = 4
# Length and characters only; custody.credentials.rules says what is wrong in words.
HostPatternText = Annotated[str, Meta(min_length=1, max_length=260, pattern=r"^[\x21-\x7e]+\Z")]
PathPatternText = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[\x21-\x7e]+\Z")]
MethodText = Annotated[str, Meta(min_length=1, max_length=20, pattern=r"^(\*|[A-Z]+)\Z")]
# Empty where nothing is injected.
InjectKeyText = Annotated[str, Meta(max_length=128, pattern=r"^[\x20-\x7e]*\Z")]
InjectFormatText = Annotated[str, Meta(min_length=7, max_length=1024, pattern=r"^[\x20-\x7e]+\Z")]
Priority = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A further secret of a route: what it is and where it goes."""

    secret_id: Annotated[Uuid, described("The secret to inject.")]
    inject_as: Annotated[InjectAs, described("Place of the secret in the request.")]
    inject_key: Annotated[InjectKeyText, described("The name of the header, query parameter or body field.")]
    inject_format: Annotated[InjectFormatText, described("The inserted text, with `{value}` in it.")] = VALUE


RouteAgents = Annotated[tuple[AgentId, ...], Meta(max_length=MAX_ROUTE_AGENTS)]
AlsoInjected = Annotated[tuple[Injection, ...], Meta(max_length=MAX_ALSO_INJECTED)]


class RoutePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The requests that a route is for, whatever it does to them."""

    host_pattern: HostPatternText
    path_pattern: PathPatternText = "/*"
    method: MethodText = "*"
    priority: Priority = 0
    enabled: bool = True
    # Nobody named: every agent of the tenant.
    agents: RouteAgents = ()

    def serves(self, agent: str) -> bool:
        """Say whether it is for this agent."""
        return not self.agents or agent in self.agents


class RouteFields(RoutePlace, frozen=True, kw_only=True):
    """The fields of a route that a tenant decides; under the signer's MAC, because it decides where a secret goes."""

    inject_as: InjectAs
    inject_key: InjectKeyText = ""
    inject_format: InjectFormatText = VALUE
    also_inject: AlsoInjected = ()
    # The agent's own Authorization, which is meant for the upstream, goes out beside what is injected.
    keep_authorization: bool = False
    # What goes in is an access token that is asked for with the secret, which itself goes nowhere.
    exchange: TokenExchange | None = None
    # Parts of an answer may be asked for.
    ranges: bool = False
    # What a call is charged before it leaves, in millionths of a dollar; of a metered one the most, of which its
    # answer says how much comes back.
    cost_micro_usd: MicroUsd = 0
    max_micro_usd: MicroUsd = 0
    usage: TokenPrices | None = None

    @property
    def charge(self) -> int:
        """Tell what a call is charged before it leaves, in millionths of a dollar."""
        return self.cost_micro_usd or self.max_micro_usd

    @property
    def placements(self) -> "list[Placement]":
        """List what goes where: its own secret, then the further ones."""
        return [] if self.inject_as == "none" else [self, *self.also_inject]


# What says where a value goes.
type Placement = RouteFields | Injection


class CredentialRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A stored route with the state of its secret, as matching, explaining and the proxy read it."""

    id: Uuid
    secret_id: Uuid | None
    fields: RouteFields
    secret_name: str = ""
    secret_version: int = 0
    # Why the secret cannot be used, or None: "deleted" or "expired".
    secret_lost: Literal["deleted", "expired"] | None = None
