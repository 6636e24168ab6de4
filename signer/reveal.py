"""The value that one credential route injects, for the proxy. Writes nothing.

The agent's own token says whose route it may be; the route as it was sealed says where the value may go.
"""

import asyncio
from typing import Any

from custody.credentials.token_exchange import TokenExchange, ValueNotForExchange, read_value
from custody.credentials.types import RouteFields
from custody.kit import clock
from custody.kit.errors import Forbidden, Frozen
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.refusals import CredentialRouteAbsent
from custody.protocol.signer.secrets import Further, Revealed, RevealForRoute, TokenRequest
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from signer import token_requests
from signer.context import Signer
from signer.credentials import VALUE_OF, open_route, open_value

_READ = "SELECT * FROM reveal_read($1, $2, $3)"


class RouteDisabled(Forbidden):
    """This credential route is disabled."""


class SecretUnavailable(Forbidden):
    """The secret of this credential route was deleted or has expired."""


async def judge(signer: Signer, route: str, caller: ProvenAgent) -> tuple[Any, str | None, RouteFields]:
    """The row of a route that serves the agent now, its secret, and what was sealed of it; refuses any other."""
    tenant = caller.tenant
    row = await signer.pool.fetchrow(_READ, tenant, caller.agent, route)
    if row is None:
        raise BadProof
    if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
        raise TokenRevoked
    if row["frozen"]:
        raise Frozen("The agent or its tenant is frozen; its secrets are not used until it is unfrozen.")
    if row["fields"] is None:
        raise CredentialRouteAbsent
    secret = None if row["secret_id"] is None else str(row["secret_id"])
    said = open_route(signer.sealer, tenant, route, secret, (row["fields"], row["mac"]))
    if not said.serves(caller.agent):
        raise CredentialRouteAbsent
    if not said.enabled:
        raise RouteDisabled
    if row["lost"] is not None:
        raise SecretUnavailable(reason=row["lost"])
    return row, secret, said


async def reveal(signer: Signer, message: RevealForRoute, call: Call[ProvenAgent]) -> Revealed:
    """Open the newest values of the secrets behind a route of the agent's tenant, if the route serves the agent."""
    tenant = call.caller.tenant
    row, secret, said = await judge(signer, message.route, call.caller)
    if secret is None:
        return Revealed(None, 0, said, b"")
    value = open_value(signer.sealer, tenant, secret, row)
    also = await _further(signer, tenant, said) if said.also_inject else []
    if said.exchange is None:
        return Revealed(secret, row["version"], said, value, row["expires_at"], also)
    if said.exchange.grant == "refreshToken":
        # Handed out to one at a time: signer/refreshes.py.
        return Revealed(secret, row["version"], said, b"", row["expires_at"], also)
    # A signature by RSA takes a millisecond.
    request = await asyncio.to_thread(_request, said.exchange, value)
    return Revealed(secret, row["version"], said, b"", row["expires_at"], also, request)


def _request(exchange: TokenExchange, value: bytes) -> TokenRequest:
    try:
        return token_requests.build(exchange, read_value(exchange, value), clock.now())
    except (ValueNotForExchange, ValueError):
        # It was rotated since.
        raise SecretUnavailable(
            "The secret of this credential route is not what its exchange needs.", reason="unfit"
        ) from None


async def _further(signer: Signer, tenant: str, said: RouteFields) -> list[Further]:
    found = []
    async with signer.pool.acquire() as connection:
        for one in said.also_inject:
            row = await connection.fetchrow(VALUE_OF, tenant, one.secret_id)
            if row is None:
                raise SecretUnavailable(reason="deleted")
            if row["expires_at"] is not None and row["expires_at"] <= clock.now():
                raise SecretUnavailable(reason="expired")
            value = open_value(signer.sealer, tenant, one.secret_id, row)
            found.append(Further(row["version"], value, row["expires_at"]))
    return found
