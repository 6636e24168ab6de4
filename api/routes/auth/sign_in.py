"""Sign-in with a wallet or with a code by e-mail. Spec 1/5, decisions 5."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.callers import Origin
from custody.kit.errors import Forbidden, Unauthenticated, Unavailable
from custody.people import sign_in
from custody.people.types import CodeSent, EmailBody, EmailCodeBody, Nonce, SignedIn, WalletBody
from custody.ports import Ports

routes = Routes("/auth", tag="Sign-in")
FAILS = (Unauthenticated, Forbidden)


@routes.get("/nonce", who=public, limit="nonce", returns={200: Nonce}, private=True)
async def nonce(ports: Ports, origin: Origin) -> Any:
    """Get a nonce for one Sign-in with Ethereum message (EIP-4361); it lives five minutes."""
    return await sign_in.nonce(ports, origin)


@routes.post(
    "/verify", who=public, limit="verify", returns={200: SignedIn}, fails=FAILS, private=True, shows_secret=True
)
async def verify(ports: Ports, origin: Origin, body: WalletBody) -> Any:
    """Sign in with a wallet.

    The first sign-in makes a user and a tenant of his own, whose API key is in this one answer.
    """
    return await sign_in.with_wallet(ports, origin, body)


@routes.post("/email/send", who=public, limit="codes", returns={200: CodeSent}, fails=(Unavailable,), private=True)
async def send_code(ports: Ports, origin: Origin, body: EmailBody) -> Any:
    """Send a sign-in code to an e-mail address; the answer is the same for every address."""
    return await sign_in.send_code(ports, origin, body.email)


@routes.post(
    "/email/verify", who=public, limit="codes", returns={200: SignedIn}, fails=FAILS, private=True, shows_secret=True
)
async def verify_code(ports: Ports, origin: Origin, body: EmailCodeBody) -> Any:
    """Sign in with the code that was sent."""
    return await sign_in.with_email(ports, origin, body)
