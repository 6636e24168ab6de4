"""Who is calling: from one credential in the headers to a caller. Decisions 1 (credentials), 5.

What is found here serves reading and early refusal. Everything that acts is proven again by the signer.
"""

import asyncio
import base64
import time
from collections import OrderedDict
from typing import Any

from sanic import Request

from api.http.who import Kind, Who
from custody.identity.mfa import counted, is_fresh, max_age
from custody.kit import clock, tokens
from custody.kit.callers import (
    AgentCaller,
    AppClientCaller,
    Caller,
    Origin,
    PlatformCaller,
    Proof,
    SessionCaller,
    TenantCaller,
)
from custody.kit.db import Pool
from custody.kit.errors import Forbidden, Invalid, Unauthenticated
from custody.kit.jwt import AgentClaims, Claims, SessionClaims, TokenKeys, UnknownKey
from custody.people import store as people
from custody.people.store import Standing
from custody.ports import Ports
from custody.protocol.messages import Done, PublicKeys

# How long a good credential is believed without asking again: the most a revocation takes to reach reads.
BELIEVED_SECONDS = 1.0
_CACHED = 20_000
_MAX_KEY_CHARACTERS = 512
_MAX_BASIC_CHARACTERS = 1024
_HEADERS = ("x-service-key", "x-service-platform-key", "authorization")


class AmbiguousCredentials(Invalid):
    """Send one credential, not several: X-Service-Key, X-Service-Platform-Key or Authorization."""


class NoCredential(Unauthenticated):
    """This route needs a credential."""


class BadCredential(Unauthenticated):
    """The credential is not valid."""


class SessionRevoked(Unauthenticated):
    """This session has ended, or you are no longer a member of its tenant; sign in again."""


class WrongRole(Forbidden):
    """Your role in this tenant does not allow that."""


class MfaRequired(Forbidden):
    """Show a second factor first: this needs recent multi-factor authentication."""


class WrongKind(Forbidden):
    """This kind of credential may not call this route."""


class MissingScope(Forbidden):
    """This platform key lacks the scope of this route."""


class _Believed:
    """Answers of the database, each for one second."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, tuple[float, Any]] = OrderedDict()

    def get(self, key: object) -> Any:
        found = self._known.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, key: object, value: Any) -> None:
        self._known[key] = (time.monotonic() + BELIEVED_SECONDS, value)
        self._known.move_to_end(key)
        while len(self._known) > _CACHED:
            self._known.popitem(last=False)


class Credentials:
    """Finds the caller of a request."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._believed = _Believed()
        self._token_keys = TokenKeys({})
        self._asking = asyncio.Lock()

    async def caller(self, request: Request, who: Who, origin: Origin, *, acts: bool) -> Caller | None:
        """The caller, or None on a public route. Raises 401 without a valid credential, 403 for a wrong kind.

        Where the caller acts, the signer looks whether a token was revoked, in the transaction that acts; asking
        here too would be a round trip for an answer that may be old by then.
        """
        if "public" in who.kinds:
            return None
        given = [name for name in _HEADERS if request.headers.get(name)]
        if len(given) > 1 or any(len(request.headers.getall(name)) > 1 for name in given):
            raise AmbiguousCredentials
        if not given:
            raise NoCredential
        value = request.headers[given[0]]
        if given[0] == "authorization" and value[:6].lower() == "basic ":
            return _allowed(await self._app_client(request, value[6:], origin), who)
        return await self._bearer_or_key(given[0], value, origin, who, acts=acts)

    async def _bearer_or_key(self, header: str, value: str, origin: Origin, who: Who, *, acts: bool) -> Caller:
        if not value.isascii():
            raise BadCredential
        if header == "x-service-key":
            return _allowed(await self._tenant(value, origin), who)
        if header == "x-service-platform-key":
            return _allowed(await self._platform(value, origin), who)
        scheme, _, token = value.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise BadCredential("Authorization must be: Bearer <token>.")
        claims = await self._verified(token.strip(), origin)
        if isinstance(claims, SessionClaims):
            return await self._session(token.strip(), claims, origin, who)
        return _allowed(await self._agent(token.strip(), claims, origin, acts=acts), who)

    async def _tenant(self, value: str, origin: Origin) -> TenantCaller:
        if len(value) > _MAX_KEY_CHARACTERS:
            raise BadCredential
        hashed = tokens.digest(value)
        row = self._believed.get(hashed)
        if row is None:
            row = await self._ports.pool.fetchrow("SELECT tenant_id, prefix FROM find_tenant_key($1)", hashed)
            if row is None:
                raise BadCredential
            self._believed.put(hashed, row)
        principal = f"tenant-key:{row['prefix']}"
        return TenantCaller(
            proof=Proof("tenant_key", value), origin=origin, tenant=row["tenant_id"], principal=principal
        )

    async def _app_client(self, request: Request, encoded: str, origin: Origin) -> AppClientCaller:
        """Basic credentials whose user name is the app id, said once more in `X-Service-App-Id`. Spec 2/5."""
        try:
            if len(encoded) > _MAX_BASIC_CHARACTERS:
                raise BadCredential
            value = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
        except ValueError:
            raise BadCredential("Authorization must be: Basic <base64 of app id:app secret>.") from None
        # From the right: the id of a tenant may have a colon, a secret of ours never has.
        app_id, _, secret = value.rpartition(":")
        if request.headers.get("x-service-app-id") != app_id:
            raise BadCredential("X-Service-App-Id must be the user name of the Basic credential.")
        row = await self._ports.pool.fetchrow("SELECT * FROM find_app_secret($1)", tokens.digest(secret))
        if row is None or not row["enabled"] or app_id != f"{row['tenant_id']}/{row['client_id']}":
            raise BadCredential
        return AppClientCaller(
            proof=Proof("app_client", value), origin=origin, tenant=row["tenant_id"], client=row["client_id"],
            principal=f"app-client:{row['client_id']}",
        )  # fmt: skip

    async def _session(self, token: str, claims: SessionClaims, origin: Origin, who: Who) -> SessionCaller:
        """The person behind an access token; what he may do is asked each time, for it may end at any moment."""
        standing = await people.standing(self._ports.pool, claims)
        if standing is None:
            raise SessionRevoked
        caller = SessionCaller(
            proof=Proof("session", token), origin=origin, tenant=claims.tid, principal=f"user:{claims.sub}",
            user=claims.sub, session=claims.sid, role=standing.role,
            mfa_at=counted(claims.mfa_at, standing.mfa_counts_from),
        )  # fmt: skip
        _allowed(caller, who)
        _admit(caller, standing, who)
        return caller

    async def _platform(self, value: str, origin: Origin) -> PlatformCaller:
        if len(value) > _MAX_KEY_CHARACTERS:
            raise BadCredential
        row = await self._ports.pool.fetchrow("SELECT prefix, scopes FROM find_platform_key($1)", tokens.digest(value))
        if row is None:
            raise BadCredential
        scoped = row["scopes"] is not None and self._ports.deployment.scoped_platform_keys
        scopes = tuple(row["scopes"]) if scoped else None
        return PlatformCaller(
            proof=Proof("platform_key", value), origin=origin, key_prefix=row["prefix"], scopes=scopes
        )

    async def _agent(self, token: str, claims: AgentClaims, origin: Origin, *, acts: bool) -> AgentCaller:
        key = (claims.tid, claims.sub, claims.inc, claims.epoch)
        if not acts and self._believed.get(key) is None:
            await _not_revoked(self._ports.pool, claims)
            self._believed.put(key, True)
        return AgentCaller(proof=Proof("agent", token), origin=origin, tenant=claims.tid, agent=claims.sub)

    async def _verified(self, token: str, origin: Origin) -> Claims:
        try:
            return self._token_keys.read(token)
        except UnknownKey:
            # A key we have not heard of: ask the signer, once for all who wait, for nobody else's word counts.
            async with self._asking:
                if self._believed.get("jwks") is None:
                    self._token_keys = TokenKeys.from_jwks(await public_keys(self._ports, origin))
                    self._believed.put("jwks", True)
            return self._token_keys.read(token)


async def public_keys(ports: Ports, origin: Origin) -> list[dict[str, str]]:
    """The public token keys, from the signer itself."""
    outcome = (await ports.signer.tell(PublicKeys(), origin)).outcome
    assert isinstance(outcome, Done)  # noqa: S101 - the protocol says so
    keys: list[dict[str, str]] = outcome.data["keys"]
    return keys


async def _not_revoked(pool: Pool, claims: AgentClaims) -> None:
    row = await pool.fetchrow("SELECT incarnation, token_epoch FROM agent_get($1, $2)", claims.tid, claims.sub)
    if row is None or (str(row["incarnation"]), row["token_epoch"]) != (claims.inc, claims.epoch):
        raise BadCredential("This token was revoked; ask the tenant for a new one.", code="token_revoked")


_KINDS: dict[type[Caller], Kind] = {
    TenantCaller: "tenant_key", AgentCaller: "agent_token", PlatformCaller: "platform_key", SessionCaller: "session",
    AppClientCaller: "app_client",
}  # fmt: skip


def _admit(caller: SessionCaller, standing: Standing, who: Who) -> None:
    """Raise unless the person's role will do and, for an action, a second factor is recent enough."""
    if caller.role not in who.roles:
        raise WrongRole
    if who.action is None:
        return
    if not is_fresh(standing.mfa, who.action, caller.mfa_at, int(clock.now().timestamp())):
        seconds = max_age(standing.mfa, who.action)
        raise MfaRequired(action=who.action, methods=list(standing.methods), maxAgeSeconds=seconds)


def _allowed[C: Caller](caller: C, who: Who) -> C:
    if _KINDS[type(caller)] not in who.kinds:
        raise WrongKind
    scopes = caller.scopes if isinstance(caller, PlatformCaller) else None
    if who.scope is not None and scopes is not None and who.scope not in scopes:
        raise MissingScope(f"This platform key lacks the scope {who.scope}.")
    return caller
