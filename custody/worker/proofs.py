"""The proof of the caller, derived from the credential itself and from nothing the api says."""

from datetime import datetime

from custody.identity.mfa import counting_mfa
from custody.kit import clock, tokens
from custody.kit.act import Credential
from custody.kit.cache import Cache
from custody.kit.callers import Proof
from custody.kit.db import Pool
from custody.kit.jwt import AgentClaims, BadToken, SessionClaims
from custody.kit.logs import logger
from custody.kit.shapes import Role
from custody.protocol.refusals import BadProof
from custody.worker.judging import JudgingSeals
from custody.worker.proven import (
    PLATFORM,
    Proven,
    ProvenAgent,
    ProvenAppClient,
    ProvenPlatform,
    ProvenSession,
    ProvenTenant,
    WrongKind,
)
from custody.worker.sealing import Sealer, Tampered, fields
from custody.worker.token_keys import Tokens

log = logger(__name__)
_CACHED = 10_000
# How long a tenant's key is believed without its row. Commands that write look at the row in their transaction; those
# that only read would otherwise answer a revoked key for as long as the process lives.
BELIEVED_SECONDS = 1.0
TENANT_KEY_MAC = "tenant-key-mac"
PLATFORM_KEY_MAC = "platform-key-mac"
MEMBERSHIP_MAC = "membership-mac"
APP_CLIENT_MAC = "app-client-mac"
APP_SECRET_MAC = "app-secret-mac"  # noqa: S105 - the name of a purpose


class SessionRevoked(BadProof):
    """This session has ended, or you are no longer a member of its tenant; sign in again."""


def membership_content(tenant: str, user: str, role: Role, since: datetime) -> bytes:
    """Build what a membership's MAC is of; who was removed and comes back has another `since`."""
    return fields(tenant, user, role, clock.unix_microseconds(since))


class Proofs:
    """Checks proofs against token keys, and against rows under MACs of identity's key, which `sealer` holds."""

    def __init__(self, pool: Pool, sealer: Sealer, read: Tokens, judging: JudgingSeals, *, scoped: bool = True) -> None:
        self._pool = pool
        self._sealer = sealer
        self._read = read
        self._judging = judging
        self._scoped = scoped
        self._tenants: Cache[bytes, ProvenTenant] = Cache(_CACHED, BELIEVED_SECONDS)

    async def agent(self, proof: Proof | None) -> ProvenAgent:
        """The agent behind a token."""
        if proof is None:
            raise BadProof
        if proof.kind != "agent":
            raise WrongKind("Only an agent may sign; use the agent's own token.")
        claims = await self._read.read(proof.value)
        if not isinstance(claims, AgentClaims):
            raise BadToken
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
        # An attacker who can write the database must not be able to add a key of their own.
        self._check(row["mac"], TENANT_KEY_MAC, row["tenant_id"], fields(row["tenant_id"], hashed))
        proven = ProvenTenant(
            tenant=row["tenant_id"], standing=Credential("tenant_key", hashed), principal=f"tenant-key:{row['prefix']}"
        )
        self._tenants.put(hashed, proven)
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
        claims = await self._read.read(proof.value)
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
        counts_from = row["mfa_counts_from"] if claims.approval is None else row["item_counts_from"]
        judging = self._judging.open(claims.tid, row["config_version"], row["judging"], row["judging_mac"])
        return ProvenSession(
            tenant=claims.tid,
            standing=Credential("session", session=claims.sid, membership_mac=mac),
            principal=f"user:{claims.sub}",
            user=claims.sub,
            session=claims.sid,
            role=role,
            mfa_at=counting_mfa(claims.mfa_at, counts_from),
            policy=judging.mfa,
            methods=tuple(row["methods"]),
            page=claims.page,
            bound=claims.bound,
            item=None if claims.approval is None else (claims.approval, claims.digest or ""),
        )

    async def app_client(self, proof: Proof) -> ProvenAppClient:
        """The app client behind `<tenant>/<client>:<secret>`."""
        # Split from the right: the id of a tenant may contain a colon, a secret never does.
        app_id, _, secret = proof.value.rpartition(":")
        # Both ids are compared with the row's; the secret alone finds it.
        hashed = tokens.digest(secret)
        row = await self._pool.fetchrow("SELECT * FROM find_app_secret($1)", hashed)
        if row is None or app_id != f"{row['tenant_id']}/{row['client_id']}" or not row["enabled"]:
            raise BadProof
        tenant, client = row["tenant_id"], row["client_id"]
        self._check(row["mac"], APP_SECRET_MAC, tenant, fields(tenant, client, hashed))
        self._check(row["client_mac"], APP_CLIENT_MAC, tenant, fields(tenant, client, row["document"], "enabled"))
        return ProvenAppClient(
            tenant=tenant, standing=Credential("app_secret", hashed), principal=f"app-client:{client}", client=client
        )

    async def anybody(self, proof: Proof | None) -> Proven:
        """Verify a proof of any kind."""
        if proof is None:
            raise BadProof
        if proof.kind == "agent":
            return await self.agent(proof)
        if proof.kind == "platform_key":
            return await self.platform(proof)
        if proof.kind == "session":
            return await self.session(proof)
        return await (self.app_client(proof) if proof.kind == "app_client" else self.tenant(proof))

    def is_member(self, tenant: str, user: str, role: Role, since: datetime, mac: bytes) -> bool:
        """Say whether a membership is one that identity wrote."""
        try:
            self._sealer.check_mac(mac, MEMBERSHIP_MAC, tenant, membership_content(tenant, user, role, since))
        except Tampered:
            return False
        return True

    def _check(self, mac: bytes, purpose: str, tenant: str, content: bytes) -> None:
        try:
            self._sealer.check_mac(mac, purpose, tenant, content)
        except Tampered:
            log.error(
                "a caller was refused: it is not one that identity wrote", extra={"mac": purpose, "tenant": tenant}
            )
            raise BadProof from None
