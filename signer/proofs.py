"""Who asks, derived from the credential itself and from nothing the api says (design 2)."""

from collections import OrderedDict
from datetime import datetime
from uuid import UUID

import msgspec

from custody.identity.mfa import Action, MfaPolicy, counted, is_fresh, max_age
from custody.kit import clock, tokens
from custody.kit.callers import Proof
from custody.kit.db import Pool
from custody.kit.errors import Forbidden, Unauthenticated
from custody.kit.jwt import BadToken, SessionClaims, TokenKeys
from custody.kit.logs import logger
from custody.kit.shapes import Role
from signer.judging import JudgingSeals
from signer.sealing import Sealer, Tampered, fields

log = logger(__name__)
_CACHED = 10_000
TENANT_KEY_MAC = "tenant-key-mac"
PLATFORM_KEY_MAC = "platform-key-mac"
MEMBERSHIP_MAC = "membership-mac"
APP_CLIENT_MAC = "app-client-mac"
APP_SECRET_MAC = "app-secret-mac"  # noqa: S105 - the name of a purpose
PLATFORM = "platform"


class BadProof(Unauthenticated):
    """The credential is not valid."""


class TokenRevoked(BadProof):
    """This token was revoked; ask the tenant for a new one."""


class WrongKind(Forbidden):
    """This kind of credential may not do that."""


class ProvenAgent(msgspec.Struct, frozen=True):
    """An agent token whose signature holds. Incarnation and epoch are compared with the agent's row, in the write."""

    tenant: str
    agent: str
    incarnation: str
    epoch: int

    @property
    def principal(self) -> str:
        """The name under which idempotency keys know this caller; a re-created agent is another one."""
        return f"agent:{self.agent}:{self.incarnation}"


class SessionRevoked(BadProof):
    """This session has ended, or its person is no longer of this tenant; sign in again."""


class WrongRole(Forbidden):
    """Your role in this tenant does not allow that."""


class MfaRequired(Forbidden):
    """Show a second factor first: this needs recent multi-factor authentication."""


class ProvenTenant(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever acts for a tenant: by itself the holder of a tenant key that the signer sealed.

    `standing` is what every write checks again, so that nothing is done for a credential that ended meanwhile: the hash
    of a tenant's key or of an app client's secret, or a session's id and the MAC of the membership it acts by.
    """

    tenant: str
    standing: bytes
    principal: str


class ProvenAppClient(ProvenTenant, frozen=True, kw_only=True):
    """A server integration with a secret of an enabled app client."""

    client: str


class ProvenSession(ProvenTenant, frozen=True, kw_only=True):
    """A person signed in to a tenant, with the role and the policy of this moment."""

    user: str
    session: str
    role: Role
    mfa_at: int | None
    policy: MfaPolicy
    methods: tuple[str, ...]

    def need(self, roles: frozenset[Role], action: Action | None) -> None:
        """Raise unless the role is one of these and, for an action, a second factor is recent enough."""
        if self.role not in roles:
            raise WrongRole
        if action is not None and not is_fresh(self.policy, action, self.mfa_at, int(clock.now().timestamp())):
            raise MfaRequired(action=action, methods=list(self.methods), maxAgeSeconds=max_age(self.policy, action))


class ProvenPlatform(msgspec.Struct, frozen=True):
    """A platform key."""

    principal: str
    scopes: tuple[str, ...] | None
    # False: the deployment does not look at scopes.
    scoped: bool = True

    def need(self, scope: str) -> None:
        """Raise WrongKind unless the key has the scope (None: it has all)."""
        if self.scoped and self.scopes is not None and scope not in self.scopes:
            raise WrongKind(f"This platform key lacks the scope {scope}.")


Proven = ProvenAgent | ProvenTenant | ProvenPlatform


def membership_content(tenant: str, user: str, role: Role, since: datetime) -> bytes:
    """What the MAC of a membership is of; who was removed and comes back has another `since`."""
    return fields(tenant, user, role, clock.unix_microseconds(since))


class Proofs:
    """Checks proofs against token keys and sealed key rows."""

    def __init__(
        self, pool: Pool, sealer: Sealer, token_keys: TokenKeys, judging: JudgingSeals, *, scoped: bool = True
    ) -> None:
        self._pool = pool
        self._sealer = sealer
        self._token_keys = token_keys
        self._judging = judging
        self._scoped = scoped
        self._tenants: OrderedDict[bytes, ProvenTenant] = OrderedDict()

    def agent(self, proof: Proof | None) -> ProvenAgent:
        """The agent behind a token."""
        if proof is None:
            raise BadProof
        if proof.kind != "agent":
            raise WrongKind("Only an agent signs; use the agent's own token.")
        claims = self._token_keys.verify(proof.value)
        return ProvenAgent(claims.tid, claims.sub, claims.inc, claims.epoch)

    async def tenant(self, proof: Proof | None) -> ProvenTenant:
        """The tenant behind an API key."""
        if proof is None:
            raise BadProof
        if proof.kind != "tenant_key":
            raise WrongKind("Only the tenant's API key may do this.")
        hashed = tokens.digest(proof.value)
        if (known := self._tenants.get(hashed)) is not None:
            return known
        row = await self._pool.fetchrow("SELECT tenant_id, prefix, mac FROM find_tenant_key($1)", hashed)
        if row is None:
            raise BadProof
        # Somebody who can write the database must not be able to add a key of his own.
        self._check(row["mac"], TENANT_KEY_MAC, row["tenant_id"], fields(row["tenant_id"], hashed))
        proven = ProvenTenant(tenant=row["tenant_id"], standing=hashed, principal=f"tenant-key:{row['prefix']}")
        self._tenants[hashed] = proven
        if len(self._tenants) > _CACHED:
            self._tenants.popitem(last=False)
        return proven

    async def platform(self, proof: Proof | None) -> ProvenPlatform:
        """The operator behind a platform key."""
        if proof is None:
            raise BadProof
        if proof.kind != "platform_key":
            raise WrongKind("Only a platform key may do this.")
        hashed = tokens.digest(proof.value)
        row = await self._pool.fetchrow("SELECT prefix, scopes, mac FROM find_platform_key($1)", hashed)
        if row is None:
            raise BadProof
        scopes = tuple(row["scopes"]) if row["scopes"] is not None else None
        self._check(
            row["mac"], PLATFORM_KEY_MAC, PLATFORM, fields(hashed, *(["*"] if scopes is None else sorted(scopes)))
        )
        return ProvenPlatform(f"platform-key:{row['prefix']}", scopes, self._scoped)

    async def session(self, proof: Proof) -> ProvenSession:
        """The person behind an access token, with role and policy as they are now: one round trip."""
        claims = self._token_keys.read(proof.value)
        if not isinstance(claims, SessionClaims):
            raise BadToken
        row = await self._pool.fetchrow(
            "SELECT * FROM session_proof($1, $2, $3, $4)", claims.sid, claims.sub, claims.tid, claims.iat
        )
        if row is None:
            raise SessionRevoked
        mac, role = row["membership_mac"], row["role"]
        self._check(
            mac, MEMBERSHIP_MAC, claims.tid, membership_content(claims.tid, claims.sub, role, row["member_since"])
        )
        judging = self._judging.open(claims.tid, row["config_version"], row["judging"], row["judging_mac"])
        return ProvenSession(
            tenant=claims.tid, standing=UUID(claims.sid).bytes + mac, principal=f"user:{claims.sub}", user=claims.sub,
            session=claims.sid, role=role, mfa_at=counted(claims.mfa_at, row["mfa_counts_from"]), policy=judging.mfa,
            methods=tuple(row["methods"]),
        )  # fmt: skip

    async def app_client(self, proof: Proof) -> ProvenAppClient:
        """The app client behind `<tenant>/<client>:<secret>`."""
        # From the right: the id of a tenant may have a colon, a secret of ours never has.
        app_id, _, secret = proof.value.rpartition(":")
        # Both ids are compared with the row's; the secret alone finds it.
        hashed = tokens.digest(secret)
        row = await self._pool.fetchrow("SELECT * FROM find_app_secret($1)", hashed)
        if row is None or app_id != f"{row['tenant_id']}/{row['client_id']}" or not row["enabled"]:
            raise BadProof
        tenant, client = row["tenant_id"], row["client_id"]
        self._check(row["mac"], APP_SECRET_MAC, tenant, fields(tenant, client, hashed))
        self._check(row["client_mac"], APP_CLIENT_MAC, tenant, fields(tenant, client, row["document"], "enabled"))
        return ProvenAppClient(tenant=tenant, standing=hashed, principal=f"app-client:{client}", client=client)

    async def anybody(self, proof: Proof | None) -> Proven:
        """Whoever it is."""
        if proof is None:
            raise BadProof
        if proof.kind == "agent":
            return self.agent(proof)
        if proof.kind == "platform_key":
            return await self.platform(proof)
        if proof.kind == "session":
            return await self.session(proof)
        return await (self.app_client(proof) if proof.kind == "app_client" else self.tenant(proof))

    def _check(self, mac: bytes, purpose: str, tenant: str, content: bytes) -> None:
        try:
            self._sealer.check_mac(mac, purpose, tenant, content)
        except Tampered:
            log.error(
                "a caller was refused: it is not one that the signer wrote", extra={"mac": purpose, "tenant": tenant}
            )
            raise BadProof from None
