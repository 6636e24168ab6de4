"""Make, change and delete credential routes; the signer seals what says where a secret goes."""

from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.secrets.types import CredentialRouteChangeBody, NewCredentialRouteBody
from custody.credentials import rules
from custody.credentials.types import InjectAs, RouteFields
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.signer.refusals import SecretOfRouteFixed
from custody.protocol.signer.secrets import (
    ChangeCredentialRoute,
    CreateCredentialRoute,
    CredentialRoute,
)

_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(RouteFields)}
# Stands in for the fields that a change leaves out.
_HARMLESS = RouteFields(host_pattern="localhost", inject_as="query", inject_key="key")


async def create(ports: Ports, caller: TenantCaller, body: NewCredentialRouteBody) -> Answered[CredentialRoute]:
    """Make a route for a secret of the tenant. Checked here for an early answer; the signer's check is what counts."""
    fields = rules.check(
        _fields(body),
        allow_broad=ports.allow_broad_routes,
        allow_cookies=ports.allow_cookie_injection,
        allow_addresses=True,
    )
    rules.check_secret(fields, body.secret_id)
    rules.check_price(fields)
    return await ports.workers.ask(CreateCredentialRoute(body.secret_id, fields), caller)


async def change(
    ports: Ports, caller: TenantCaller, route: str, body: CredentialRouteChangeBody
) -> Answered[CredentialRoute]:
    """Change some fields of a route."""
    if body.secret_id is not UNSET:
        raise SecretOfRouteFixed(fields=["secretId"])
    return await ports.workers.ask(ChangeCredentialRoute(route, _changes(body)), caller)


def _fields(body: NewCredentialRouteBody) -> RouteFields:
    return RouteFields(
        host_pattern=body.host_pattern,
        path_pattern=body.path_pattern,
        method=body.method,
        inject_as=_way(body.inject_as),
        inject_key=body.inject_key,
        inject_format=body.inject_format,
        priority=body.priority,
        enabled=body.enabled,
        agents=body.agents,
        also_inject=body.also_inject,
        keep_authorization=body.keep_authorization,
        exchange=body.exchange,
        ranges=body.ranges,
        cost_micro_usd=body.cost_micro_usd,
        max_micro_usd=body.max_micro_usd,
        usage=body.usage,
    )


def _changes(body: CredentialRouteChangeBody) -> dict[str, Any]:
    """Return the changes as they will be stored, or raise InvalidRoute for a field that is wrong in any route.

    What the operator forbids and what does not fit together only the signer can say: it knows what stands already.
    """
    given = {name: value for name in _NAMES if (value := getattr(body, name)) is not UNSET}
    if "inject_as" in given:
        given["inject_as"] = _way(given["inject_as"])
    whole = msgspec.structs.replace(_HARMLESS, **given)
    checked = rules.check(whole, allow_broad=True, allow_cookies=True, allow_addresses=True)
    return {_NAMES[name]: msgspec.to_builtins(getattr(checked, name)) for name in given}


def _way(text: str) -> InjectAs:
    try:
        way: InjectAs = msgspec.convert(text, InjectAs)
    except msgspec.ValidationError:
        raise rules.InvalidRoute(
            "injectAs: It must be header, basic, query, body, json, text, awsSigV4 or none.", fields=["injectAs"]
        ) from None
    return way
