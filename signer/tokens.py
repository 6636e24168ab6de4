"""The token keys: agent tokens are minted here, verified anywhere with the public halves. Decisions 5."""

import base64
import hashlib
from datetime import datetime
from typing import Any

import asyncpg
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.kit import clock, ids
from custody.kit.jwt import AgentClaims, SessionClaims, TokenKeys
from custody.kit.logs import logger
from custody.kit.shapes import Role
from signer.sealing import Context, Sealer, Tampered

log = logger(__name__)
PLATFORM = "platform"
_PURPOSE = "token-key"
ACCESS_SECONDS = 900
# Any number that only this story uses: two signers that start at once make one key, not two.
_ADVISORY_LOCK = 7_160_003


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A person signed in to one tenant: what an access token says of it."""

    id: str
    user: str
    tenant: str
    role: Role
    provider: str
    amr: tuple[str, ...]
    mfa_at: datetime | None
    generation: int


class Minter:
    """Holds the private token key and mints with it."""

    def __init__(self, kid: str, key: Ed25519PrivateKey, public: dict[str, bytes], issuer: str) -> None:
        self._kid = kid
        self._key = key
        self._issuer = issuer
        self.public = public
        self.keys = TokenKeys(public, issuer)

    def agent_token(self, tenant: str, agent: str, incarnation: str, epoch: int, ttl_seconds: int) -> str:
        """A token that dies with the agent's incarnation, its epoch, or after `ttl_seconds`."""
        issued = int(clock.now().timestamp())
        claims = AgentClaims(
            iss=self._issuer, sub=agent, tid=tenant, scope="agent", inc=incarnation, epoch=epoch, iat=issued,
            exp=issued + ttl_seconds, jti=ids.new_uuid(),
        )  # fmt: skip
        return jwt.encode(msgspec.structs.asdict(claims), self._key, algorithm="EdDSA", headers={"kid": self._kid})

    def session_token(self, session: Session) -> str:
        """A person's access token, for 900 seconds."""
        issued = int(clock.now().timestamp())
        claims = SessionClaims(
            iss=self._issuer, sub=session.user, sid=session.id, tid=session.tenant, role=session.role, scope="session",
            amr=list(session.amr), mfa_at=int(session.mfa_at.timestamp()) if session.mfa_at else None, iat=issued,
            exp=issued + ACCESS_SECONDS, jti=ids.new_uuid(),
        )  # fmt: skip
        return jwt.encode(msgspec.structs.asdict(claims), self._key, algorithm="EdDSA", headers={"kid": self._kid})

    def jwks(self) -> list[dict[str, str]]:
        """The public keys as JWKs (RFC 8037), and whose tokens they are for."""
        common = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "issuer": self._issuer}
        return [{**common, "kid": kid, "x": _base64url(raw)} for kid, raw in sorted(self.public.items())]


async def load_or_make(connection: asyncpg.Connection, sealer: Sealer, issuer: str) -> Minter:
    """The newest token key, made on the first start. Raises Tampered when the master key does not open it."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('custody.tenant', $1, true), pg_advisory_xact_lock($2)", PLATFORM, _ADVISORY_LOCK
        )
        rows = await connection.fetch(
            "SELECT k.kid, k.public_key, s.blob FROM token_keys k JOIN sealed s ON s.tenant_id = $1 AND "
            "s.owner_kind = 'token_key' "
            "AND s.owner = k.kid AND s.purpose = $2 WHERE k.retired_at IS NULL ORDER BY k.created_at DESC",
            PLATFORM, _PURPOSE,
        )  # fmt: skip
        if rows:
            return _opened(rows, sealer, issuer)
        key = Ed25519PrivateKey.generate()
        kid = hashlib.sha256(_public(key)).hexdigest()[:16]
        await connection.execute("INSERT INTO token_keys (kid, public_key) VALUES ($1, $2)", kid, _public(key))
        await connection.execute(
            "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) VALUES ($1, "
            "'token_key', $2, $3, $4, $5)",
            PLATFORM, kid, _PURPOSE, sealer.key_version, sealer.seal(key.private_bytes_raw(), _context(kid)),
        )  # fmt: skip
        return Minter(kid, key, {kid: _public(key)}, issuer)


def _opened(rows: list[Any], sealer: Sealer, issuer: str) -> Minter:
    """The newest key mints; a row counts only if its private half opens, whatever public half stands beside it."""
    keys: dict[str, Ed25519PrivateKey] = {}
    for row in rows:
        try:
            keys[row["kid"]] = Ed25519PrivateKey.from_private_bytes(sealer.open(row["blob"], _context(row["kid"])))
        except Tampered:
            log.error("a token key was refused: it is not one that the signer wrote", extra={"kid": row["kid"]})
    if not keys:
        raise Tampered
    newest = next(iter(keys))
    return Minter(newest, keys[newest], {kid: _public(key) for kid, key in keys.items()}, issuer)


def _context(kid: str) -> Context:
    return Context(PLATFORM, "token_key", kid, _PURPOSE)


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
