"""Which ways of signing in are on. Spec 2/4.1."""

from typing import Any, Literal

import msgspec

from api.http.endpoint import Routes
from api.http.who import public
from custody.ports import Ports

routes = Routes("/auth", tag="Sign-in")


class SignInMethod(msgspec.Struct, frozen=True):
    """One way of signing in."""

    id: Literal["siwe", "email", "passkey", "device"]
    enabled: bool


class Providers(msgspec.Struct, frozen=True):
    """Ways of signing in; `oauth` names providers of which this deployment has a client."""

    methods: list[SignInMethod]
    oauth: list[str]


@routes.get("/providers", who=public, returns={200: Providers})
async def providers(ports: Ports) -> Any:
    """List the ways of signing in, and which of them are on."""
    return _providers(sends_mail=ports.mail is not None)


def _providers(*, sends_mail: bool) -> Providers:
    given: dict[Literal["siwe", "email", "passkey", "device"], bool] = {
        "siwe": True, "email": sends_mail, "passkey": True, "device": True,
    }  # fmt: skip
    return Providers([SignInMethod(name, enabled) for name, enabled in given.items()], [])
