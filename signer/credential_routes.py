"""Credential routes: they decide where a secret goes, so each stands under a MAC. Spec 2/2.12, 4.5, decisions 8."""

from datetime import datetime
from typing import Any

import msgspec

from custody.credentials import rules
from custody.credentials.types import RouteFields
from custody.kit import clock, ids
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.protocol.messages import (
    ChangeCredentialRoute,
    CreateCredentialRoute,
    DeleteCredentialRoute,
    Done,
    Outcome,
)
from signer.context import Ask, Signer
from signer.credentials import TRIES, CredentialsMoving, closing, insist_on_fit, open_route, seal_route, turn
from signer.proofs import ProvenTenant
from signer.secrets import SecretAbsent

_VALUE_OF = "SELECT * FROM secret_read($1, $2)"
_READ = "SELECT * FROM credential_route_read($1, $2)"
_CREATE = "SELECT create_credential_route($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
_CHANGE = "SELECT change_credential_route($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
_DELETE = "SELECT delete_credential_route($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(RouteFields))


class CredentialRouteAbsent(NotFound):
    """There is no such credential route."""


class TooManyCredentialRoutes(Conflict):
    """A tenant has at most 10,000 credential routes; delete one that is not used."""


class SecretOfRouteFixed(Invalid):
    """A credential route keeps its secret; make another route for another secret."""


class UnknownRouteField(Invalid):
    """A credential route has no such field."""


async def create(signer: Signer, message: CreateCredentialRoute, ask: Ask[ProvenTenant]) -> Outcome:
    """Seal a route to a living secret whose value fits it."""
    tenant, secret, route, now = ask.caller.tenant, message.secret, ids.new_uuid(), clock.now()
    said = rules.check(
        message.fields, allow_broad=signer.allow_broad_secret_routes, allow_cookies=signer.allow_cookie_injection
    )
    outcome = Done(_shown(route, secret, said, now))
    text, mac = seal_route(signer.sealer, tenant, route, secret, said)
    async with turn(signer, tenant) as connection:
        for _ in range(TRIES):
            row = await connection.fetchrow(_VALUE_OF, tenant, secret)
            if row is None:
                raise SecretAbsent
            insist_on_fit(signer.sealer, tenant, secret, row, said)
            result = await connection.fetchval(
                _CREATE, tenant, ask.caller.standing, route, secret, row["version"], text, said.priority, mac, now,
                *closing(ask, outcome, secretId=secret, hostPattern=said.host_pattern),
            )  # fmt: skip
            if result == "full":
                raise TooManyCredentialRoutes
            if result == "done":
                return outcome
    raise CredentialsMoving


async def change(signer: Signer, message: ChangeCredentialRoute, ask: Ask[ProvenTenant]) -> Outcome:
    """Seal a route anew with some of its fields changed; what is not named stays."""
    _check_names(message.changes)
    async with turn(signer, ask.caller.tenant) as connection:
        for _ in range(TRIES):
            if (outcome := await _change(connection, signer, message, ask)) is not None:
                return outcome
    raise CredentialsMoving


async def _change(
    connection: Any, signer: Signer, message: ChangeCredentialRoute, ask: Ask[ProvenTenant]
) -> Outcome | None:
    """One try at the route that was read; None when somebody else was faster."""
    sealer, tenant, route = signer.sealer, ask.caller.tenant, message.route
    row = await connection.fetchrow(_READ, tenant, route)
    if row is None:
        raise CredentialRouteAbsent
    secret = str(row["secret_id"])
    # Opened before it is changed: sealing it again must not make a route good that the signer never wrote.
    said = _merged(signer, open_route(sealer, tenant, route, secret, (row["fields"], row["mac"])), message.changes)
    if not row["deleted"]:
        insist_on_fit(sealer, tenant, secret, row, said)
    outcome = Done(_shown(route, secret, said, row["created_at"]))
    text, mac = seal_route(sealer, tenant, route, secret, said)
    told = {"secretId": secret, "hostPattern": said.host_pattern, "changed": sorted(message.changes)}
    result = await connection.fetchval(
        _CHANGE, tenant, ask.caller.standing, route, row["mac"], secret, row["version"], text, said.priority, mac,
        *closing(ask, outcome, **told),
    )  # fmt: skip
    return outcome if result == "done" else None


async def delete(signer: Signer, message: DeleteCredentialRoute, ask: Ask[ProvenTenant]) -> Outcome:
    """Delete a route; one that was tampered with too."""
    outcome = Done({"deleted": message.route})
    async with turn(signer, ask.caller.tenant) as connection:
        result = await connection.fetchval(
            _DELETE, ask.caller.tenant, ask.caller.standing, message.route, *closing(ask, outcome)
        )
    if result == "absent":
        raise CredentialRouteAbsent
    return outcome


def _check_names(changes: dict[str, Any]) -> None:
    if "secretId" in changes:
        raise SecretOfRouteFixed(fields=["secretId"])
    if unknown := sorted(changes.keys() - _NAMES):
        raise UnknownRouteField(f"A credential route has no field {unknown[0][:128]!r}.", fields=[unknown[0][:128]])


def _merged(signer: Signer, old: RouteFields, changes: dict[str, Any]) -> RouteFields:
    try:
        new = msgspec.convert(msgspec.to_builtins(old) | changes, RouteFields)
    except msgspec.ValidationError as problem:
        raise rules.InvalidRoute(f"The credential route is not valid: {problem}.") from None
    # A switch that was turned off later binds what is written anew, not what stands.
    same_host = new.host_pattern == old.host_pattern
    same_key = (new.inject_as, new.inject_key) == (old.inject_as, old.inject_key)
    return rules.check(
        new,
        allow_broad=signer.allow_broad_secret_routes or same_host,
        allow_cookies=signer.allow_cookie_injection or same_key,
    )


def _shown(route: str, secret: str, said: RouteFields, created_at: datetime) -> dict[str, Any]:
    return {"id": route, "secretId": secret, **msgspec.to_builtins(said), "createdAt": clock.iso(created_at)}
