"""The sign-on of people, by their address."""

from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.callers import Origin
from custody.ports import Ports
from custody.protocol.identity.domains import Discovered, DiscoverSignOn
from custody.sign_on.domains import DiscoverBody

routes = Routes("/auth/sso", tag="Sign-in", hardened=False)


@routes.post("/discover", who=asking(DiscoverSignOn), limit="discover", private=True)
async def discover_sign_on(ports: Ports, origin: Origin, body: DiscoverBody) -> Discovered:
    """Find where people with an e-mail address sign on.

    Only its domain is looked up: the answer says nothing of whether there is such a person.
    """
    return await ports.workers.tell(DiscoverSignOn(body.email), origin)
