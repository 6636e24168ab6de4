"""Who asks, derived from the credential itself and from nothing the api says (design 2)."""

from collections import OrderedDict

import msgspec

from custody.kit import tokens
from custody.kit.callers import Proof
from custody.kit.db import Pool
from custody.kit.errors import Forbidden, Unauthenticated
from custody.kit.jwt import TokenKeys
from signer.sealing import Sealer, Tampered, fields

_CACHED = 10_000
TENANT_KEY_MAC = "tenant-key-mac"
PLATFORM_KEY_MAC = "platform-key-mac"
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


class ProvenTenant(msgspec.Struct, frozen=True):
    """A tenant key that the signer itself sealed. Every write checks again that it is not revoked."""

    tenant: str
    key_hash: bytes
    principal: str


class ProvenPlatform(msgspec.Struct, frozen=True):
    """A platform key."""

    principal: str
    scopes: tuple[str, ...] | None

    def need(self, scope: str) -> None:
        """Raise WrongKind unless the key has the scope (None: it has all)."""
        if self.scopes is not None and scope not in self.scopes:
            raise WrongKind(f"This platform key lacks the scope {scope}.")


Proven = ProvenAgent | ProvenTenant | ProvenPlatform


class Proofs:
    """Checks proofs against token keys and sealed key rows."""

    def __init__(self, pool: Pool, sealer: Sealer, token_keys: TokenKeys) -> None:
        self._pool = pool
        self._sealer = sealer
        self._token_keys = token_keys
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
        proven = ProvenTenant(row["tenant_id"], hashed, f"tenant-key:{row['prefix']}")
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
        return ProvenPlatform(f"platform-key:{row['prefix']}", scopes)

    async def tenant_or_agent(self, proof: Proof | None) -> ProvenAgent | ProvenTenant:
        """Whichever of the two it is."""
        if proof is not None and proof.kind == "agent":
            return self.agent(proof)
        return await self.tenant(proof)

    def _check(self, mac: bytes, purpose: str, tenant: str, content: bytes) -> None:
        try:
            self._sealer.check_mac(mac, purpose, tenant, content)
        except Tampered:
            raise BadProof from None
