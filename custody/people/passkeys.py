"""Passkeys: WebAuthn's JSON goes to the signer and back; nothing is judged here. Decisions 5."""

from typing import Any

import msgspec

from custody.kit.callers import Origin, SessionCaller
from custody.people.mfa_types import NewPasskey, NewPasskeyBody, PasskeySignInBody, RemovedFactor
from custody.people.types import SignedIn
from custody.ports import Ports
from custody.protocol.client import asked, told
from custody.protocol.messages import (
    NewPasskeyChallenge,
    NewSignInChallenge,
    RegisterPasskey,
    RemovePasskey,
    SignInWithPasskey,
)


async def registration_options(ports: Ports, caller: SessionCaller) -> dict[str, Any]:
    """What a browser needs to make a passkey."""
    return dict(await asked(ports.signer, NewPasskeyChallenge("register"), caller))


async def register(ports: Ports, caller: SessionCaller, body: NewPasskeyBody) -> NewPasskey:
    """Keep a passkey."""
    return msgspec.convert(await asked(ports.signer, RegisterPasskey(body.credential, body.name), caller), NewPasskey)


async def sign_in_options(ports: Ports, origin: Origin) -> dict[str, Any]:
    """What a browser needs to sign somebody in."""
    return await told(ports.signer, NewSignInChallenge(), origin)


async def sign_in(ports: Ports, origin: Origin, body: PasskeySignInBody) -> SignedIn:
    """A session for whoever holds the passkey."""
    message = SignInWithPasskey(body.credential, body.tenant_id)
    return msgspec.convert(await told(ports.signer, message, origin), SignedIn)


async def remove(ports: Ports, caller: SessionCaller, passkey: str) -> RemovedFactor:
    """One of one's own no longer counts."""
    return msgspec.convert(await asked(ports.signer, RemovePasskey(passkey), caller), RemovedFactor)
