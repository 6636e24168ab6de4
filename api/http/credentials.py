"""Who is calling: from one credential in the headers to a caller. Decisions 1 (credentials), 5.

What is found here serves reading and early refusal. Everything that acts is proven again by the signer.
"""

import asyncio
import time
from collections import OrderedDict
from typing import Any

from sanic import Request

from api.http.who import Who
from custody.kit import tokens
from custody.kit.callers import AgentCaller, Caller, Origin, PlatformCaller, Proof, TenantCaller
from custody.kit.db import Pool
from custody.kit.errors import Forbidden, Invalid, Unauthenticated
from custody.kit.jwt import AgentClaims, TokenKeys, UnknownKey
from custody.ports import Ports
from custody.protocol.messages import Done, PublicKeys

# How long a good credential is believed without asking again: the most a revocation takes to reach reads.
BELIEVED_SECONDS = 1.0
_CACHED = 20_000
_MAX_KEY_CHARACTERS = 512
_HEADERS = ("x-service-key", "x-service-platform-key", "authorization")


class AmbiguousCredentials(Invalid):
    """Send one credential, not several: X-Service-Key, X-Service-Platform-Key or Authorization."""


class NoCredential(Unauthenticated):
    """This route needs a credential."""


class BadCredential(Unauthenticated):
    """The credential is not valid."""


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
        caller = await self._find(given[0], request.headers[given[0]], origin, acts=acts)
        return _allowed(caller, who)

    async def _find(self, header: str, value: str, origin: Origin, *, acts: bool) -> Caller:
        if not value.isascii():
            raise BadCredential
        if header == "x-service-key":
            return await self._tenant(value, origin)
        if header == "x-service-platform-key":
            return await self._platform(value, origin)
        scheme, _, token = value.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise BadCredential("Authorization must be: Bearer <token>.")
        return await self._agent(token.strip(), origin, acts=acts)

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
        return TenantCaller(
            proof=Proof("tenant_key", value), origin=origin, tenant=row["tenant_id"], key_prefix=row["prefix"]
        )

    async def _platform(self, value: str, origin: Origin) -> PlatformCaller:
        if len(value) > _MAX_KEY_CHARACTERS:
            raise BadCredential
        row = await self._ports.pool.fetchrow("SELECT prefix, scopes FROM find_platform_key($1)", tokens.digest(value))
        if row is None:
            raise BadCredential
        scopes = tuple(row["scopes"]) if row["scopes"] is not None else None
        return PlatformCaller(
            proof=Proof("platform_key", value), origin=origin, key_prefix=row["prefix"], scopes=scopes
        )

    async def _agent(self, token: str, origin: Origin, *, acts: bool) -> AgentCaller:
        claims = await self._verified(token, origin)
        key = (claims.tid, claims.sub, claims.inc, claims.epoch)
        if not acts and self._believed.get(key) is None:
            await _not_revoked(self._ports.pool, claims)
            self._believed.put(key, True)
        return AgentCaller(proof=Proof("agent", token), origin=origin, tenant=claims.tid, agent=claims.sub)

    async def _verified(self, token: str, origin: Origin) -> AgentClaims:
        try:
            return self._token_keys.verify(token)
        except UnknownKey:
            # A key we have not heard of: ask the signer, once for all who wait, for nobody else's word counts.
            async with self._asking:
                if self._believed.get("jwks") is None:
                    self._token_keys = TokenKeys.from_jwks(await public_keys(self._ports, origin))
                    self._believed.put("jwks", True)
            return self._token_keys.verify(token)


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


def _allowed(caller: Caller, who: Who) -> Caller:
    kind = {TenantCaller: "tenant_key", AgentCaller: "agent_token", PlatformCaller: "platform_key"}[type(caller)]
    if kind not in who.kinds:
        raise WrongKind
    if isinstance(caller, PlatformCaller) and caller.scopes is not None and who.scope not in caller.scopes:
        raise MissingScope(f"This platform key lacks the scope {who.scope}.")
    return caller
