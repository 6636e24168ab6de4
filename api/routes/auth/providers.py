"""The ways of signing in that are on."""

from typing import Annotated, Literal

import msgspec

from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.described import described
from custody.kit.oauth_endpoints import OAuthName
from custody.ports import Ports

routes = Routes("/auth", tag="Sign-in", hardened=False)


class SignInMethod(msgspec.Struct, frozen=True):
    """One sign-in method."""

    id: Annotated[Literal["siwe", "email", "passkey", "device"], described("The method.")]
    enabled: Annotated[bool, described("True if this deployment offers it.")]


class Providers(msgspec.Struct, frozen=True):
    """Sign-in methods; `oauth` names the providers for which this deployment has a client."""

    methods: Annotated[list[SignInMethod], described("The methods, whether they are enabled or not.")]
    oauth: Annotated[list[OAuthName], described("OAuth providers; empty if there are none.")]


@routes.get("/providers", who=public)
async def list_sign_in_methods(ports: Ports) -> Providers:
    """List the sign-in methods and whether each is enabled."""
    return _providers(sends_mail=ports.mail is not None, oauth=sorted(ports.oauth_secrets))


def _providers(*, sends_mail: bool, oauth: list[OAuthName]) -> Providers:
    given: dict[Literal["siwe", "email", "passkey", "device"], bool] = {
        "siwe": True,
        "email": sends_mail,
        "passkey": True,
        "device": True,
    }
    return Providers([SignInMethod(name, enabled) for name, enabled in given.items()], oauth)
