"""Credential routes: they decide where a secret goes, so each stands under a MAC."""

from datetime import datetime
from typing import Any

import msgspec

from custody.credentials import rules
from custody.credentials.types import RouteFields
from custody.kit import clock, ids
from custody.kit.quotas import check as check_quota
from custody.kit.quotas import excess
from custody.protocol.signer.refusals import (
    CredentialRouteAbsent,
    CredentialsMoving,
    SecretAbsent,
    SecretOfRouteFixed,
    UnknownRouteField,
)
from custody.protocol.signer.secrets import (
    ChangeCredentialRoute,
    CreateCredentialRoute,
    CredentialRoute,
    DeleteCredentialRoute,
    DeletedCredentialRoute,
)
from custody.worker.call import Call
from custody.worker.proven import ProvenTenant
from signer.context import Signer
from signer.credentials import (
    TRIES,
    VALUE_OF,
    changing,
    insist_on_fit,
    insist_on_further,
    open_route,
    seal_route,
    turn,
)

# The database's own end, whatever the quota.
MAX_ROUTES = 10_000
_USAGE = "SELECT * FROM usage_read($1)"
_READ = "SELECT * FROM credential_route_read($1, $2)"
_CREATE = "SELECT create_credential_route($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_CHANGE = "SELECT change_credential_route($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_DELETE = "SELECT delete_credential_route($1, $2, $3, $4)"
_NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(RouteFields))


async def create(signer: Signer, message: CreateCredentialRoute, call: Call[ProvenTenant]) -> CredentialRoute:
    """Seal a route to a living secret whose value fits it."""
    tenant, secret, route, now = call.caller.tenant, message.secret, ids.new_uuid(), clock.now()
    said = rules.check(
        message.fields,
        allow_broad=signer.allow_broad_secret_routes,
        allow_cookies=signer.allow_cookie_injection,
        allow_addresses=signer.allow_address_routes,
    )
    outcome = _show(route, secret, said, now)
    rules.check_secret(said, secret)
    rules.check_price(said)
    text, mac = seal_route(signer.sealer, tenant, route, secret, said)
    async with turn(signer, tenant) as connection:
        used = await connection.fetchrow(_USAGE, tenant)
        check_quota("credential_routes", used["credential_routes"], signer.quotas.limits.of(tenant).credential_routes)
        for _ in range(TRIES):
            version = None
            if secret is not None:
                row = await connection.fetchrow(VALUE_OF, tenant, secret)
                if row is None:
                    raise SecretAbsent
                insist_on_fit(signer.sealer, tenant, secret, row, said)
                version = row["version"]
            await insist_on_further(connection, signer.sealer, tenant, said)
            result = await connection.fetchval(
                _CREATE,
                *changing(call, outcome, secretId=secret, hostPattern=said.host_pattern),
                route,
                secret,
                version,
                text,
                said.priority,
                mac,
                now,
            )
            if result == "full":
                raise excess("credential_routes", MAX_ROUTES, MAX_ROUTES)
            if result == "done":
                return outcome
    raise CredentialsMoving


async def change(signer: Signer, message: ChangeCredentialRoute, call: Call[ProvenTenant]) -> CredentialRoute:
    """Seal a route again with some of its fields changed; what is not named stays."""
    _check_names(message.changes)
    async with turn(signer, call.caller.tenant) as connection:
        for _ in range(TRIES):
            if (outcome := await _change(connection, signer, message, call)) is not None:
                return outcome
    raise CredentialsMoving


async def _change(
    connection: Any, signer: Signer, message: ChangeCredentialRoute, call: Call[ProvenTenant]
) -> CredentialRoute | None:
    """One try at the route that was read; None when somebody else was faster."""
    sealer, tenant, route = signer.sealer, call.caller.tenant, message.route
    row = await connection.fetchrow(_READ, tenant, route)
    if row is None:
        raise CredentialRouteAbsent
    secret = None if row["secret_id"] is None else str(row["secret_id"])
    # Opened before it is changed: sealing it again must not make a route good that the signer never wrote.
    said = _merge(signer, open_route(sealer, tenant, route, secret, (row["fields"], row["mac"])), message.changes)
    rules.check_secret(said, secret)
    rules.check_price(said)
    if secret is not None and not row["deleted"]:
        insist_on_fit(sealer, tenant, secret, row, said)
    if "alsoInject" in message.changes:
        await insist_on_further(connection, sealer, tenant, said)
    outcome = _show(route, secret, said, row["created_at"])
    text, mac = seal_route(sealer, tenant, route, secret, said)
    told = {"secretId": secret, "hostPattern": said.host_pattern, "changed": sorted(message.changes)}
    result = await connection.fetchval(
        _CHANGE,
        *changing(call, outcome, **told),
        route,
        row["mac"],
        secret,
        row["version"],
        text,
        said.priority,
        mac,
    )
    return outcome if result == "done" else None


async def delete(signer: Signer, message: DeleteCredentialRoute, call: Call[ProvenTenant]) -> DeletedCredentialRoute:
    """Delete a route; one that was tampered with too."""
    outcome = DeletedCredentialRoute(message.route)
    async with turn(signer, call.caller.tenant) as connection:
        result = await connection.fetchval(_DELETE, *changing(call, outcome), message.route)
    if result == "absent":
        raise CredentialRouteAbsent
    return outcome


def _check_names(changes: dict[str, Any]) -> None:
    if "secretId" in changes:
        raise SecretOfRouteFixed(fields=["secretId"])
    if unknown := sorted(changes.keys() - _NAMES):
        raise UnknownRouteField(f"A credential route has no field {unknown[0][:128]!r}.", fields=[unknown[0][:128]])


def _merge(signer: Signer, old: RouteFields, changes: dict[str, Any]) -> RouteFields:
    try:
        new = msgspec.convert(msgspec.to_builtins(old) | changes, RouteFields)
    except msgspec.ValidationError as problem:
        raise rules.InvalidRoute(f"The credential route is not valid: {problem}.") from None
    # A switch that was turned off later binds what is written again, not what stands.
    same_host = new.host_pattern == old.host_pattern
    same_key = (new.inject_as, new.inject_key, new.also_inject) == (old.inject_as, old.inject_key, old.also_inject)
    return rules.check(
        new,
        allow_broad=signer.allow_broad_secret_routes or same_host,
        allow_cookies=signer.allow_cookie_injection or same_key,
        allow_addresses=signer.allow_address_routes or same_host,
    )


def _show(route: str, secret: str | None, said: RouteFields, created_at: datetime) -> CredentialRoute:
    return CredentialRoute(id=route, secret_id=secret, created_at=clock.iso(created_at), **msgspec.structs.asdict(said))
