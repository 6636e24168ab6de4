"""Sign-ins under way: what a browser was sent to a provider for, kept until it comes back, for ten minutes.

The state is random and its hash alone is stored. What else the provider and the client must show again (the nonce, the
verifier, the id of a SAML request) is made from the state under identity's key, so nobody who reads the database has
any of it. The document, its end included, is under a MAC: a row that was changed, moved or kept alive opens nothing.
"""

import base64
from datetime import timedelta
from typing import Any, Literal

import msgspec

from custody.kit import clock, tokens
from custody.protocol.identity.refusals import SignInStateInvalid
from custody.protocol.identity.sign_on import SignOnKind
from custody.worker.proven import PLATFORM
from custody.worker.sealing import Tampered, fields
from identity.context import Identity

SECONDS = 600
STATE_CHARACTERS = 43
_MAC = "sign-in-request"
_SECRET = "sign-in-secret"  # noqa: S105 - the name of a purpose
_PUT = "INSERT INTO sign_in_requests (state_hash, document, mac, expires_at) VALUES ($1, $2, $3, $4)"
# Anyone who asks clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM sign_in_requests WHERE state_hash IN "
    "(SELECT state_hash FROM sign_in_requests WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_LOCK = (
    "SELECT document, opened, mac FROM sign_in_requests WHERE state_hash = $1 AND expires_at > service_now() FOR UPDATE"
)
_OPEN = "UPDATE sign_in_requests SET opened = true, mac = $2 WHERE state_hash = $1"
_DELETE = "DELETE FROM sign_in_requests WHERE state_hash = $1"
Purpose = Literal["nonce", "verifier", "request-id"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One browser on its way: for which provider of which tenant, and where it goes afterwards."""

    kind: SignOnKind
    provider: str
    tenant: str | None
    # SHA-256 of what the browser's cookie holds, and of the provider's configuration as it was.
    browser: str
    configured: str
    # Where the client waits, what it wants back unchanged, and the challenge of its verifier.
    redirect_uri: str
    state: str
    challenge: str
    # An administrator tries the provider: nobody is signed in.
    test: bool
    ends_at: int
    # The app client at whose page here somebody signs in: it may register them.
    app: str | None = None


class Under(msgspec.Struct, frozen=True):
    """A request with its state, once its MAC was found true; `version` is that of the key it was made with."""

    state: str
    request: Request
    opened: bool
    version: bytes

    def secret(self, identity: Identity, purpose: Purpose) -> str:
        """Derive a secret from the state for one purpose: 43 characters that nobody else can tell."""
        return _secret(identity, self.version, self.state, purpose)

    def __repr__(self) -> str:
        return "Under()"


async def put(connection: Any, identity: Identity, request: Request) -> Under:
    """Store a request under a new state."""
    state = tokens.new_random()
    document = msgspec.json.encode(request).decode()
    hashed = tokens.digest(state)
    mac = _mac(identity, hashed, document, opened=False)
    await connection.execute(_PUT, hashed, document, mac, clock.now() + timedelta(seconds=SECONDS))
    await connection.execute(_CLEAR)
    return Under(state, request, False, mac[:4])


async def lock(connection: Any, identity: Identity, state: str) -> Under:
    """The living request of a state, locked until the transaction ends; SignInStateInvalid if there is none."""
    hashed = tokens.digest(state)
    row = await connection.fetchrow(_LOCK, hashed)
    if row is None:
        raise SignInStateInvalid
    try:
        identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, _content(hashed, row["document"], opened=row["opened"]))
    except Tampered:
        raise SignInStateInvalid from None
    request = msgspec.json.decode(row["document"], type=Request)
    if request.ends_at <= clock.now().timestamp():
        raise SignInStateInvalid
    return Under(state, request, row["opened"], bytes(row["mac"][:4]))


async def note_opened(connection: Any, identity: Identity, under: Under) -> None:
    """Note that the provider has answered, so that its answer counts once."""
    hashed = tokens.digest(under.state)
    document = msgspec.json.encode(under.request).decode()
    await connection.execute(_OPEN, hashed, _mac(identity, hashed, document, opened=True))


async def end(connection: Any, state: str) -> None:
    """Use the state up for good."""
    await connection.execute(_DELETE, tokens.digest(state))


def ends_at() -> int:
    """Compute when a request that begins now is over, in Unix seconds."""
    return int(clock.now().timestamp()) + SECONDS


def _secret(identity: Identity, version: bytes, state: str, purpose: Purpose) -> str:
    # Under the version of the row's MAC: a rotation in between must not make another value of it.
    made = identity.sealer.mac_like(version, _SECRET, PLATFORM, fields(purpose, state))
    return base64.urlsafe_b64encode(made[4:]).decode().rstrip("=")


def _mac(identity: Identity, hashed: bytes, document: str, *, opened: bool) -> bytes:
    return identity.sealer.mac(_MAC, PLATFORM, _content(hashed, document, opened=opened))


def _content(hashed: bytes, document: str, *, opened: bool) -> bytes:
    return fields(hashed, document, "opened" if opened else "begun")
