"""The common part of secrets' and credential routes' use cases: how both are sealed, and the turn they are changed in.

A value is bound to its secret, version and expiry, a route to its tenant and secret: what a database writer copies,
changes or moves does not open. docs/sealed-blob.md.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec

from custody.credentials.rules import is_particular, value_fits
from custody.credentials.types import Placement, RouteFields
from custody.kit import clock
from custody.kit.act import Act, Credential
from custody.protocol.signer.refusals import CredentialsMoving, SecretAbsent
from custody.worker.act import act
from custody.worker.agent_queues import CREDENTIALS, TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenTenant
from custody.worker.sealing import Context, Sealer, Tampered, fields
from signer.context import Signer

ROUTE_MAC = "credential-route-mac"
REFRESH = "refresh-token"
VALUE_OF = "SELECT * FROM secret_read($1, $2)"
# How often a change begins again when somebody else, on another host, was faster.
TRIES = 4


def place(tenant: str, secret: str, version: int, expires_at: datetime | None) -> Context:
    """Name where a value is sealed to."""
    until = clock.iso(expires_at) if expires_at else ""
    return Context(tenant, "secret", secret, "secret", f"{version}:{until}")


def place_of_refresh(tenant: str, secret: str, version: int) -> Context:
    """Name where a refresh token is sealed to that came of a secret's version."""
    return Context(tenant, "secret", secret, REFRESH, str(version))


def open_value(sealer: Sealer, tenant: str, secret: str, row: Any) -> bytes:
    """The value of a secret that was not deleted, or Tampered; the row has its version, expiry and sealed value."""
    if row["blob"] is None:
        raise Tampered
    return sealer.open(row["blob"], place(tenant, secret, row["version"], row["expires_at"]))


def seal_route(sealer: Sealer, tenant: str, route: str, secret: str | None, said: RouteFields) -> tuple[str, bytes]:
    """The stored text of a route and its MAC."""
    text = msgspec.json.encode(said, order="sorted").decode()
    return text, sealer.mac(ROUTE_MAC, tenant, fields(tenant, route, secret or "", text))


def open_route(sealer: Sealer, tenant: str, route: str, secret: str | None, stored: tuple[str, bytes]) -> RouteFields:
    """Read what a stored route says, or Tampered; `stored` are its text and its MAC."""
    text, mac = stored
    sealer.check_mac(mac, ROUTE_MAC, tenant, fields(tenant, route, secret or "", text))
    return msgspec.json.decode(text, type=RouteFields)


def insist_on_fit(sealer: Sealer, tenant: str, secret: str, row: Any, said: Placement) -> None:
    """Raise what `value_fits` does unless the present value will do; only headers and exchanges are particular."""
    if row["blob"] is None and row["expires_at"] is not None and row["expires_at"] <= clock.now():
        return  # the value of a secret that expired long ago is gone, and is never injected again
    if is_particular(said):
        value_fits(said, open_value(sealer, tenant, secret, row).decode())


async def insist_on_further(connection: Any, sealer: Sealer, tenant: str, said: RouteFields) -> None:
    """Raise SecretAbsent, or what `value_fits` does, unless each further secret is there and can be injected."""
    for one in said.also_inject:
        row = await connection.fetchrow(VALUE_OF, tenant, one.secret_id)
        if row is None:
            raise SecretAbsent(fields=["alsoInject"])
        insist_on_fit(sealer, tenant, one.secret_id, row, one)


@asynccontextmanager
async def turn(signer: Signer, tenant: str) -> AsyncIterator[Any]:
    """A connection, once it is this tenant's turn to change a secret or route.

    Changes of one tenant wait for each other in the database; waiting here, they take no connection meanwhile.
    """
    try:
        async with signer.queues.turn_of(tenant, CREDENTIALS), signer.pool.acquire() as connection:
            yield connection
    except TooManyWaiting:
        raise CredentialsMoving from None


def changing(call: Call[ProvenTenant], outcome: msgspec.Struct, **metadata: Any) -> tuple[str, Credential, Act]:
    """The first arguments of each function that changes a secret or route: for whom, by which credential, the act."""
    return call.caller.tenant, call.caller.standing, act(call, pack(outcome), **metadata)
