"""Passkeys: WebAuthn's JSON in and out. Decisions 5."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import person, public
from custody.kit.callers import Origin, SessionCaller
from custody.kit.errors import Conflict, Forbidden, NotFound, Unauthenticated
from custody.people import factor_store, passkeys
from custody.people.mfa_types import NewPasskey, NewPasskeyBody, Options, Passkey, PasskeySignInBody, RemovedFactor
from custody.people.types import SignedIn
from custody.ports import Ports

routes = Routes("/auth/passkeys", tag="Passkeys")


@routes.post("/register/options", who=person, returns={200: Options}, fails=(Forbidden,), private=True)
async def registration_options(ports: Ports, caller: SessionCaller) -> Any:
    """Get what a browser needs to make a passkey; the challenge lives five minutes."""
    return await passkeys.registration_options(ports, caller)


@routes.post(
    "/register/verify", who=person, returns={200: NewPasskey}, fails=(Forbidden, Conflict), private=True,
    shows_secret=True,
)  # fmt: skip
async def register(ports: Ports, caller: SessionCaller, body: NewPasskeyBody) -> Any:
    """Register a passkey, to sign in with and as a second factor; the first one brings recovery codes."""
    return await passkeys.register(ports, caller, body)


@routes.post("/login/options", who=public, limit="nonce", returns={200: Options}, private=True)
async def sign_in_options(ports: Ports, origin: Origin) -> Any:
    """Get what a browser needs to sign in with a passkey; the same for everybody."""
    return await passkeys.sign_in_options(ports, origin)


@routes.post(
    "/login/verify", who=public, limit="verify", returns={200: SignedIn}, fails=(Unauthenticated, Forbidden),
    private=True, shows_secret=True,
)  # fmt: skip
async def sign_in(ports: Ports, origin: Origin, body: PasskeySignInBody) -> Any:
    """Sign in with a passkey; one that asked who its person is counts as recent MFA."""
    return await passkeys.sign_in(ports, origin, body)


@routes.get("", who=person, returns={200: list[Passkey]}, private=True)
async def list_all(ports: Ports, caller: SessionCaller) -> Any:
    """List one's own passkeys, the newest first."""
    return await factor_store.passkeys(ports.pool, caller.user)


@routes.delete("/<passkey_id>", who=person, returns={200: RemovedFactor}, fails=(Forbidden, NotFound))
async def remove(ports: Ports, caller: SessionCaller, passkey_id: str) -> Any:
    """Remove one of one's own passkeys."""
    return await passkeys.remove(ports, caller, passkey_id)
