"""The chains that orders can be for."""

from api.areas.chains import shown
from api.areas.chains.shown import ChainSeen
from api.http.endpoint import Routes
from api.http.who import public
from custody.ports import Ports

routes = Routes("/chains", tag="System")


@routes.get("", who=public)
async def list_chains(ports: Ports) -> list[ChainSeen]:
    """List the chains of this deployment, the default one first."""
    return shown.to_public(ports.chains)
