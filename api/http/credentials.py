"""Authentication: from one credential in the headers to a caller.

What is found here serves reading and early refusal. Everything that acts is proven again by the signer.
"""

import asyncio
import base64
import hashlib
from typing import Any

import msgspec
from sanic import Request

from api.areas.agents import store as agents
from api.areas.people import store as people
from api.areas.people.store import Standing
from api.areas.tenants import credential_store
from api.http.who import Kind, Who
from custody.identity.mfa import counting_mfa, is_fresh, max_age
from custody.kit import clock, tokens
from custody.kit.cache import Cache
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
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.command import WorkerName, declaration_of
from custody.protocol.common import PublicKeys
from custody.protocol.identity.tenants import (
    Vouch,
    Vouched,
    VouchedAppClient,
    VouchedPlatform,
    VouchedSession,
    VouchedTenant,
)
from custody.protocol.refusals import NotForPages, SessionBound, WrongRole, mfa_required

# How long the signer's word about a row counts while the row says the same. What a revocation takes away is gone from
# the row, or says something else: this only bounds what a row put back could gain, and costs a question a minute.
VOUCHED_SECONDS = 60.0
# How long a good credential is believed without asking again: the most a revocation takes to reach reads.
BELIEVED_SECONDS = 1.0
_CACHED = 20_000
_MAX_KEY_CHARACTERS = 512
_MAX_BASIC_CHARACTERS = 1024
_AGENT_BESIDE = "x-service-agent-token"
_HEADERS = ("x-service-key", "x-service-platform-key", "authorization")


class AmbiguousCredentials(Invalid):
    """Send one credential, not several: X-Service-Key, X-Service-Platform-Key or Authorization."""


class NoCredential(Unauthenticated):
    """This route requires a credential."""


class BadCredential(Unauthenticated):
    """The credential is not valid."""


class AgentTokenRequired(Unauthenticated):
    """This route needs the agent's token too: send it in X-Service-Agent-Token."""


class OtherTenant(Forbidden):
    """The agent's token and the session belong to two tenants; send those of one."""


class SessionRevoked(Unauthenticated):
    """This session has ended, or you are no longer a member of its tenant; sign in again."""


class WrongKind(Forbidden):
    """This route does not accept this kind of credential."""


class MissingScope(Forbidden):
    """This platform key lacks the scope of this route."""


def shown_by(request: Request) -> bytes | None:
    """A name for the credential that a request shows, looked at or not; None where it shows none."""
    given = [request.headers.get(name) or "" for name in _HEADERS]
    if not any(given):
        return None
    return hashlib.sha256("\n".join(given).encode(errors="surrogateescape")).digest()


class Credentials:
    """Finds the caller of a request."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        # Rows as the database answered, and rows that the signer vouched for.
        self._rows: Cache[object, Any] = Cache(_CACHED, BELIEVED_SECONDS)
        self._vouched_for: Cache[tuple[object, ...], bool] = Cache(_CACHED, VOUCHED_SECONDS)
        self._token_keys = TokenKeys({})
        self._public_keys: dict[str, list[dict[str, str]]] = {"agents": [], "sessions": []}
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
            return _check(await self._app_client(request, value[6:], origin), who)
        caller = await self._bearer_or_key(given[0], value, origin, who, acts=acts)
        if who.agent_beside and isinstance(caller, SessionCaller):
            return await self._with_agent(request, caller)
        return caller

    async def _with_agent(self, request: Request, caller: SessionCaller) -> SessionCaller:
        """The person with the agent whose token was shown beside the session."""
        given = request.headers.getall(_AGENT_BESIDE, [])
        if len(given) > 1:
            raise AmbiguousCredentials("Send one X-Service-Agent-Token, not several.")
        if not given or not given[0]:
            raise AgentTokenRequired
        if not given[0].isascii():
            raise BadCredential
        claims = await self._verify(given[0], caller.origin)
        if not isinstance(claims, AgentClaims):
            raise BadCredential("X-Service-Agent-Token must be an agent's token.")
        agent = await self._agent(given[0], claims, caller.origin, acts=False)
        if agent.tenant != caller.tenant:
            raise OtherTenant
        return msgspec.structs.replace(caller, agent=agent.agent)

    async def _bearer_or_key(self, header: str, value: str, origin: Origin, who: Who, *, acts: bool) -> Caller:
        if not value.isascii():
            raise BadCredential
        if header == "x-service-key":
            return _check(await self._tenant(value, origin), who)
        if header == "x-service-platform-key":
            return _check(await self._platform(value, origin), who)
        scheme, _, token = value.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise BadCredential("Authorization must be: Bearer <token>.")
        claims = await self._verify(token.strip(), origin)
        if isinstance(claims, SessionClaims):
            return await self._session(token.strip(), claims, origin, who)
        return _check(await self._agent(token.strip(), claims, origin, acts=acts), who)

    async def _tenant(self, value: str, origin: Origin) -> TenantCaller:
        if len(value) > _MAX_KEY_CHARACTERS:
            raise BadCredential
        hashed = tokens.digest(value)
        key = self._rows.get(hashed)
        if key is None:
            key = await credential_store.tenant_key(self._ports.pool, hashed)
            if key is None:
                raise BadCredential
            self._rows.put(hashed, key)
        caller = TenantCaller(
            proof=Proof("tenant_key", value), origin=origin, tenant=key.tenant, principal=f"tenant-key:{key.prefix}"
        )
        await self._vouch(caller, (hashed, key.tenant), VouchedTenant(key.tenant))
        return caller

    async def _app_client(self, request: Request, encoded: str, origin: Origin) -> AppClientCaller:
        """Basic credentials whose user name is the app id, said once more in `X-Service-App-Id`."""
        try:
            if len(encoded) > _MAX_BASIC_CHARACTERS:
                raise BadCredential
            value = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
        except ValueError:
            raise BadCredential("Authorization must be: Basic <base64 of app id:app secret>.") from None
        # Split from the right: the id of a tenant may contain a colon, a secret never does.
        app_id, _, secret = value.rpartition(":")
        if request.headers.getall("x-service-app-id", []) != [app_id]:
            raise BadCredential("X-Service-App-Id must be the user name of the Basic credential.")
        hashed = tokens.digest(secret)
        row = await credential_store.app_secret(self._ports.pool, hashed)
        if row is None or not row.enabled or app_id != f"{row.tenant}/{row.client}":
            raise BadCredential
        caller = AppClientCaller(
            proof=Proof("app_client", value),
            origin=origin,
            tenant=row.tenant,
            client=row.client,
            principal=f"app-client:{row.client}",
        )
        found = VouchedAppClient(row.tenant, row.client)
        # The document and its MAC as well: a client that was switched on behind the signer's back is another.
        await self._vouch(caller, (hashed, row.tenant, row.client, row.document, row.mac, row.client_mac), found)
        return caller

    async def _session(self, token: str, claims: SessionClaims, origin: Origin, who: Who) -> SessionCaller:
        """The person behind an access token; their role is read for every request, because it may end at any moment."""
        if claims.approval is not None and not (who.asks and declaration_of(who.asks).for_item):
            raise BadCredential("This token is good for approving one item, and for nothing else.")
        standing = await people.standing(self._ports.pool, claims)
        if standing is None:
            raise SessionRevoked
        counts_from = standing.mfa_counts_from if claims.approval is None else standing.item_counts_from
        caller = SessionCaller(
            proof=Proof("session", token),
            origin=origin,
            tenant=claims.tid,
            principal=f"user:{claims.sub}",
            user=claims.sub,
            session=claims.sid,
            role=standing.role,
            mfa_at=counting_mfa(claims.mfa_at, counts_from),
            page=claims.page,
            bound=claims.bound,
        )
        found = VouchedSession(caller.tenant, caller.user, standing.role, standing.mfa)
        await self._vouch(caller, ("session", msgspec.json.encode(found)), found)
        _check(caller, who)
        _admit(caller, standing, who)
        return caller

    async def _platform(self, value: str, origin: Origin) -> PlatformCaller:
        if len(value) > _MAX_KEY_CHARACTERS:
            raise BadCredential
        hashed = tokens.digest(value)
        row = await credential_store.platform_key(self._ports.pool, hashed)
        if row is None:
            raise BadCredential
        scopes = None
        if row.scopes is not None and self._ports.deployment.scoped_platform_keys:
            scopes = tuple(row.scopes)
        caller = PlatformCaller(proof=Proof("platform_key", value), origin=origin, key_prefix=row.prefix, scopes=scopes)
        written = None if row.scopes is None else sorted(row.scopes)
        await self._vouch(caller, (hashed, str(written)), VouchedPlatform(written))
        return caller

    async def _vouch(self, caller: Caller, row: tuple[object, ...], found: Vouched) -> None:
        """Raise BadCredential unless identity, too, says so: anyone who writes the database can plant a row.

        The rows stand under MACs, whose key only workers have. It is asked once a minute for each row as it reads.
        """
        if row in self._vouched_for:
            return
        try:
            proven = (await self._ports.workers.ask(Vouch(), caller)).answer
        except Unauthenticated:
            raise BadCredential from None
        if proven != found:
            raise BadCredential
        self._vouched_for.put(row, True)

    async def _agent(self, token: str, claims: AgentClaims, origin: Origin, *, acts: bool) -> AgentCaller:
        key = (claims.tid, claims.sub, claims.inc, claims.epoch)
        if not acts and key not in self._rows:
            await _not_revoked(self._ports.pool, claims)
            self._rows.put(key, True)
        return AgentCaller(proof=Proof("agent", token), origin=origin, tenant=claims.tid, agent=claims.sub)

    async def _verify(self, token: str, origin: Origin) -> Claims:
        try:
            return self._token_keys.read(token)
        except UnknownKey:
            # A key we have not heard of: ask the worker whose it is, once for all who wait. The signer first, so that
            # agents do not wait for identity.
            async with self._asking:
                for use, worker in _USES:
                    if use not in self._rows:
                        self._public_keys[use] = (
                            await self._ports.workers.only(worker).tell(PublicKeys(), origin)
                        ).keys
                        self._token_keys = TokenKeys.from_jwks(**self._public_keys)
                        self._rows.put(use, True)
                    if self._token_keys.knows_key_of(token):
                        break
            return self._token_keys.read(token)


# Whose tokens each worker signs.
_USES: tuple[tuple[str, WorkerName], ...] = (("agents", "signer"), ("sessions", "identity"))


async def _not_revoked(pool: Pool, claims: AgentClaims) -> None:
    if await agents.token_standing(pool, AgentRef(claims.tid, claims.sub)) != (claims.inc, claims.epoch):
        raise BadCredential("This token was revoked; ask the tenant for a new one.", code="token_revoked")


_KINDS: dict[type[Caller], Kind] = {
    TenantCaller: "tenant_key",
    AgentCaller: "agent_token",
    PlatformCaller: "platform_key",
    SessionCaller: "session",
    AppClientCaller: "app_client",
}


def _admit(caller: SessionCaller, standing: Standing, who: Who) -> None:
    """Raise unless the person's role will do and, for an action, a second factor is recent enough."""
    if caller.page is not None and not who.pages:
        raise NotForPages
    if caller.bound and not who.bound:
        raise SessionBound
    if caller.role not in who.roles:
        raise WrongRole
    if who.action is None:
        return
    if not is_fresh(standing.mfa, who.action, caller.mfa_at, int(clock.now().timestamp())):
        seconds = max_age(standing.mfa, who.action)
        raise mfa_required(who.action, standing.methods, seconds)


# In the order in which a sentence names them.
_NAMED: dict[Kind, str] = {
    "tenant_key": "a tenant's API key",
    "app_client": "an app client",
    "agent_token": "an agent's token",
    "session": "the session of a signed-in person",
    "platform_key": "a platform key",
}


def _kinds(who: Who) -> str:
    """The kinds of credential that a route takes, in words."""
    names = [name for kind, name in _NAMED.items() if kind in who.kinds]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _check[C: Caller](caller: C, who: Who) -> C:
    if _KINDS[type(caller)] not in who.kinds:
        raise WrongKind(f"This route takes {_kinds(who)}, and not this credential.")
    scopes = caller.scopes if isinstance(caller, PlatformCaller) else None
    if who.scope is not None and scopes is not None and who.scope not in scopes:
        raise MissingScope(f"This platform key lacks the scope {who.scope}.")
    return caller
