"""The value that one credential route injects, for the proxy. Writes nothing. Decisions 8.

The agent's own token says whose route it may be; the route as it was sealed says where the value may go.
"""

from custody.kit.errors import Forbidden, Frozen
from custody.protocol.messages import Revealed, RevealForRoute
from signer.context import Signer
from signer.credential_routes import CredentialRouteAbsent
from signer.credentials import open_route, open_value
from signer.proofs import BadProof, ProvenAgent, TokenRevoked

_READ = "SELECT * FROM reveal_read($1, $2, $3)"


class RouteDisabled(Forbidden):
    """This credential route is disabled."""


class SecretUnavailable(Forbidden):
    """The secret of this credential route was deleted or has expired."""


async def reveal(signer: Signer, message: RevealForRoute, caller: ProvenAgent) -> Revealed:
    """Open the newest value of the secret behind a route of the agent's tenant."""
    tenant = caller.tenant
    row = await signer.pool.fetchrow(_READ, tenant, caller.agent, message.route)
    if row is None:
        raise BadProof
    if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
        raise TokenRevoked
    if row["frozen"]:
        raise Frozen("The agent or its tenant is frozen; no secret is used until it is unfrozen.")
    if row["fields"] is None:
        raise CredentialRouteAbsent
    secret = str(row["secret_id"])
    said = open_route(signer.sealer, tenant, message.route, secret, (row["fields"], row["mac"]))
    if not said.enabled:
        raise RouteDisabled
    if row["lost"] is not None:
        raise SecretUnavailable(reason=row["lost"])
    value = open_value(signer.sealer, tenant, secret, row)
    return Revealed(secret, row["version"], said, value, row["expires_at"])
