"""Passkeys: WebAuthn's JSON in and out."""

from api.areas.people import factor_store, sign_in
from api.areas.people.mfa_types import NewPasskeyBody, Options, Passkey, PasskeySignInBody
from api.areas.people.sign_in import TenantNeeded
from api.http.bodies import MAX_PASSKEY_BODY
from api.http.endpoint import Routes
from api.http.who import asking, person
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.factors import (
    NewPasskey,
    NewPasskeyChallenge,
    RegisterPasskey,
    RemovedFactor,
    RemovePasskey,
)
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import NewSignInChallenge, SignInWithPasskey
from custody.protocol.refusals import MfaRequired

routes = Routes("/auth/passkeys", tag="Passkeys", hardened=False)


@routes.post("/register/options", who=asking(NewPasskeyChallenge), fails=(MfaRequired,), private=True)
async def begin_passkey_registration(ports: Ports, caller: SessionCaller) -> Answered[Options]:
    """Get the WebAuthn options to create a passkey; the challenge is valid for five minutes."""
    return await ports.workers.ask(NewPasskeyChallenge("register"), caller)


@routes.post(
    "/register/verify",
    who=asking(RegisterPasskey),
    max_body=MAX_PASSKEY_BODY,
    private=True,
    shows_secret=True,
)
async def register_passkey(ports: Ports, caller: SessionCaller, body: NewPasskeyBody) -> Answered[NewPasskey]:
    """Register a passkey for sign-in and as a second factor; the first factor brings recovery codes."""
    return await ports.workers.ask(RegisterPasskey(body.credential, body.name), caller)


@routes.post("/login/options", who=asking(NewSignInChallenge), limit="nonce", private=True)
async def begin_passkey_sign_in(ports: Ports, origin: Origin) -> Options:
    """Get the WebAuthn options to sign in with a passkey; they name no user."""
    return await ports.workers.tell(NewSignInChallenge(), origin)


@routes.post(
    "/login/verify",
    who=asking(SignInWithPasskey),
    limit="verify",
    max_body=MAX_PASSKEY_BODY,
    fails=(TenantNeeded,),
    private=True,
    shows_secret=True,
)
async def sign_in_with_passkey(ports: Ports, origin: Origin, body: PasskeySignInBody) -> SignedIn:
    """Sign in with a passkey; user verification counts as recent MFA."""
    return await sign_in.with_passkey(ports, origin, body)


@routes.get("", who=person, private=True)
async def list_passkeys(ports: Ports, caller: SessionCaller, query: Page) -> Listed[Passkey]:
    """List your passkeys, newest first."""
    return await factor_store.passkeys(ports.pool, caller.user, query)


@routes.delete("/<passkey_id>", who=asking(RemovePasskey))
async def remove_passkey(ports: Ports, caller: SessionCaller, passkey_id: str) -> Answered[RemovedFactor]:
    """Remove one of your passkeys, but never your last way to sign in."""
    return await ports.workers.ask(RemovePasskey(passkey_id), caller)
