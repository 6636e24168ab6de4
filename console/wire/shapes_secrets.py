"""Secrets, credential and payment routes of the API, and the same in words. There is no field for a value. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from words.texts.amounts import bad_amount, whole
from words.texts.lines import Tone
from words.texts.moments import moment, span
from words.texts.plain import short

SOON_DAYS: Final = 7


class Secret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Metadata of a secret."""

    id: str
    name: str
    description: str | None
    version: int
    expires_at: str | None
    created_at: str
    rotated_at: str | None = None


class Injection(msgspec.Struct, frozen=True, rename="camel"):
    """A further secret that goes into the same requests."""

    secret_id: str
    inject_as: str
    inject_key: str
    inject_format: str = "{value}"


class CredentialRoute(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Into which requests a secret goes, and how."""

    id: str
    secret_id: str | None
    host_pattern: str
    path_pattern: str
    method: str
    inject_as: str
    inject_key: str
    inject_format: str
    priority: int
    enabled: bool
    created_at: str
    agents: list[str] = []
    also_inject: list[Injection] = []
    keep_authorization: bool = False
    ranges: bool = False


class PaymentRoute(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A way in which the proxy pays for requests: for which, how much, and to whom."""

    id: str
    host_pattern: str
    path_pattern: str
    method: str
    priority: int
    enabled: bool
    created_at: str
    max_per_call: dict[str, str]
    agents: list[str] = []
    pay_to: list[str] = []
    schemes: tuple[str, ...] = ("exact",)
    allow_unknown_pay_to: bool = False


class Considered(msgspec.Struct, frozen=True, rename="camel"):
    """One route, and the first thing that speaks against it."""

    route_id: str
    reason: str


class Explanation(msgspec.Struct, frozen=True):
    """The proxy's handling of a request."""

    matched: CredentialRoute | None
    reason: str
    considered: list[Considered]


VERDICTS: Final = {
    "matched": "The request would be forwarded with the secret of this route.",
    "no_route": "No route matches: the proxy would refuse the request.",
    "agent_frozen": "The agent is frozen: the proxy would refuse the request.",
    "tenant_frozen": "The tenant is frozen: the proxy would refuse the request.",
    "secret_deleted": "A route matches, but its secret was deleted: the proxy would refuse the request.",
    "secret_expired": "A route matches, but its secret has expired: the proxy would refuse the request.",
}
_PLACES: Final = {
    "header": "header",
    "basic": "Basic header",
    "query": "query parameter",
    "body": "body field",
    "json": "place in JSON",
    "text": "placeholder",
    "awsSigV4": "signature for AWS",
    "none": "nothing",
}
REASONS: Final = {
    "matched": "it matches",
    "lower_priority": "matches too, but another route wins",
    "disabled": "it is disabled",
    "broken": "its patterns cannot be parsed",
    "agent": "it is for other agents",
    "host": "it is for another host",
    "port": "it is for another port",
    "path": "it is for another path",
    "method": "it is for another method",
}


def expiry(secret: Secret, now: datetime) -> str | tuple[str, Tone]:
    """Tell how long a secret still serves."""
    end = moment(secret.expires_at)
    if end is None:
        return "never", "quiet"
    if end <= now:
        return "expired", "bad"
    left = span(end - now)
    return (left, "warn") if (end - now).days < SOON_DAYS else left


def target(route: CredentialRoute | PaymentRoute) -> str:
    """The requests that a route is for; the method and the agents only where not any will do."""
    method = "" if route.method == "*" else f"{route.method} "
    agents = f" of {', '.join(route.agents)}" if route.agents else ""
    return f"{method}{route.host_pattern}{route.path_pattern}{agents}"


def injection(route: CredentialRoute | Injection) -> str:
    """Describe where the value goes, and what is written around it."""
    place = _PLACES.get(route.inject_as, route.inject_as)
    if route.inject_as in ("none", "awsSigV4"):
        return f"{place} {route.inject_key}".strip()
    return f"{place} {route.inject_key}: {route.inject_format}"


def most_per_call(route: PaymentRoute) -> list[str]:
    """The most that one call may cost, by asset, in its smallest unit."""
    amounts = [(asset, whole(text), text) for asset, text in route.max_per_call.items()]
    return [f"{bad_amount(text) if amount is None else f'{amount:,}'} of {asset}" for asset, amount, text in amounts]


def payees(route: PaymentRoute) -> str | tuple[str, Tone]:
    """Tell who may be paid; nobody by the route's word alone where it lists nobody."""
    if route.allow_unknown_pay_to:
        return "anybody", "warn"
    return ", ".join(short(one) for one in route.pay_to) or "whom a rule of the agent names"


def explanation_in_lines(found: Explanation, routes: Mapping[str, CredentialRoute], names: Mapping[str, str]) -> str:
    """An explanation in lines: the verdict, the route it is about, then every route in the order of trying."""
    lines = [VERDICTS.get(found.reason, found.reason)]
    if (route := found.matched) is not None:
        lines += ["", f"  {target(route)}", f"  {injection(route)}"]
        if route.secret_id is not None:
            lines.append(f"  secret {names.get(route.secret_id, route.secret_id)}")
        for further in route.also_inject:
            lines += [f"  {injection(further)}", f"  secret {names.get(further.secret_id, further.secret_id)}"]
    lines += ["", "In evaluation order:" if found.considered else "There are no routes."]
    for number, one in enumerate(found.considered, 1):
        known = routes.get(one.route_id)
        what = target(known) if known else one.route_id
        lines.append(f"{number:>3}. {what}: {REASONS.get(one.reason, one.reason)}")
    return "\n".join(lines)
