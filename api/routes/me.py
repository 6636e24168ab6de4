"""The caller's own credential."""

from api.areas.tenants import me
from api.areas.tenants.me import CredentialEnded
from api.http.endpoint import Routes
from api.http.who import anybody
from custody.kit.callers import Caller
from custody.ports import Ports
from custody.tenants.types import Me

routes = Routes("/me", tag="Credentials")


@routes.get("", who=anybody, fails=(CredentialEnded,))
async def get_me(ports: Ports, caller: Caller) -> Me:
    """Tell what the credential of this request is: its kind, whose it is, what it may do and until when.

    Any valid credential is answered, of every kind and role; the credential itself is not repeated.
    """
    return await me.get(ports, caller)
