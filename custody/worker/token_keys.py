"""Keys that sign tokens: the signer's for agents, identity's for people. Neither worker can mint the other's tokens.

A private key is sealed by the worker that mints with it. Its public half stands in a row under a MAC of identity's key,
which both workers hold, so each trusts the other's public keys, and no row that another process wrote.
"""

import base64
import hashlib
import time
from typing import Any, Literal

import asyncpg
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.kit.db import Pool
from custody.kit.jwt import AgentClaims, Claims, SessionClaims, TokenKeys, UnknownKey
from custody.kit.logs import logger
from custody.worker.sealing import Context, Sealer, Tampered, fields

log = logger(__name__)
PLATFORM = "platform"
TOKEN_KEY_MAC = "token-key-mac"  # noqa: S105 - the name of a purpose
# A token with an unknown key makes the worker read the rows again, at most once in this time.
LOOK_SECONDS = 1.0


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """The place where the keys of one use lie."""

    use: Literal["agent", "session"]
    table: str
    sealed: str
    owner_kind: str
    purpose: str
    # An advisory lock of this use alone: where two workers start at once, only one makes the key.
    lock: int

    def context(self, kid: str) -> Context:
        """Build the context that its private half is sealed to."""
        return Context(PLATFORM, self.owner_kind, kid, self.purpose)


AGENT_KEYS = Store(
    use="agent", table="token_keys", sealed="sealed", owner_kind="token_key", purpose="token-key", lock=7_160_003
)
SESSION_KEYS = Store(
    use="session",
    table="session_keys",
    sealed="identity_sealed",
    owner_kind="session_key",
    purpose="session-key",
    lock=7_160_013,
)


class Minter:
    """Holds the private key of one use, and mints with it."""

    def __init__(self, key: Ed25519PrivateKey, public: dict[str, bytes], issuer: str) -> None:
        self._kid = kid_of(public_of(key))
        self._key = key
        self.issuer = issuer
        self.public = public

    def mint(self, claims: AgentClaims | SessionClaims) -> str:
        """The signed token with these claims."""
        said = msgspec.to_builtins(claims)
        return jwt.encode(said, self._key, algorithm="EdDSA", headers={"kid": self._kid})

    def jwks(self) -> list[dict[str, str]]:
        """The public keys as JWKs (RFC 8037), and whose tokens they are for."""
        common = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "issuer": self.issuer}
        return [{**common, "kid": kid, "x": _base64url(raw)} for kid, raw in sorted(self.public.items())]


class Tokens:
    """Reads tokens of both uses: with this worker's own keys, and with those of the other that a MAC vouches for."""

    def __init__(self, pool: Pool, macs: Sealer, own: Store, minter: Minter) -> None:
        self._pool = pool
        self._macs = macs
        self._own = own
        self._other = SESSION_KEYS if own is AGENT_KEYS else AGENT_KEYS
        self._minter = minter
        self._looked_at = 0.0
        self._keys = self._with({})

    async def read(self, token: str) -> Claims:
        """The claims of a valid token of either use."""
        try:
            return self._keys.read(token)
        except UnknownKey:
            if time.monotonic() - self._looked_at < LOOK_SECONDS:
                raise
            self._looked_at = time.monotonic()
            self._keys = self._with(await _proven_keys(self._pool, self._macs, self._other))
            return self._keys.read(token)

    def _with(self, others: dict[str, bytes]) -> TokenKeys:
        found = {self._own.use: self._minter.public, self._other.use: others}
        return TokenKeys(found["agent"], self._minter.issuer, found["session"])


async def load_or_make(
    connection: asyncpg.Connection, sealer: Sealer, macs: Sealer, store: Store, issuer: str
) -> Minter:
    """The newest key of a use, made on the first start. Raises Tampered when the worker's key opens none of them."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('custody.tenant', $1, true), pg_advisory_xact_lock($2)", PLATFORM, store.lock
        )
        # Only names from this file enter the text of the queries, here and below.
        rows = await connection.fetch(
            f"SELECT k.kid, k.public_key, k.mac, s.blob FROM {store.table} k JOIN {store.sealed} s "  # noqa: S608
            "ON s.tenant_id = $1 AND s.owner_kind = $2 AND s.owner = k.kid AND s.purpose = $3 "
            "WHERE k.retired_at IS NULL ORDER BY k.created_at DESC",
            PLATFORM,
            store.owner_kind,
            store.purpose,
        )
        keys = _open(rows, sealer, store) if rows else [await _make(connection, sealer, macs, store)]
        return Minter(keys[0], {kid_of(public_of(key)): public_of(key) for key in keys}, issuer)


def _open(rows: list[Any], sealer: Sealer, store: Store) -> list[Ed25519PrivateKey]:
    """A row counts only if its private half opens, whatever public half stands beside it."""
    keys = []
    for row in rows:
        try:
            key = Ed25519PrivateKey.from_private_bytes(sealer.open(row["blob"], store.context(row["kid"])))
            if kid_of(public_of(key)) != row["kid"]:
                raise Tampered
            keys.append(key)
        except Tampered:
            log.error("a token key was refused: it is not one that this worker wrote", extra={"kid": row["kid"]})
    if not keys:
        raise Tampered
    return keys


async def _make(connection: asyncpg.Connection, sealer: Sealer, macs: Sealer, store: Store) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    public = public_of(key)
    kid = kid_of(public)
    await connection.execute(
        f"INSERT INTO {store.table} (kid, public_key, mac) VALUES ($1, $2, $3)",  # noqa: S608
        kid,
        public,
        macs.mac(TOKEN_KEY_MAC, PLATFORM, content_of(store.use, kid, public)),
    )
    await connection.execute(
        f"INSERT INTO {store.sealed} (tenant_id, owner_kind, owner, purpose, key_version, blob) "  # noqa: S608
        "VALUES ($1, $2, $3, $4, $5, $6)",
        PLATFORM,
        store.owner_kind,
        kid,
        store.purpose,
        sealer.key_version,
        sealer.seal(key.private_bytes_raw(), store.context(kid)),
    )
    return key


async def _proven_keys(pool: Pool, macs: Sealer, store: Store) -> dict[str, bytes]:
    """The public keys of a use whose rows are ours."""
    rows = await pool.fetch(f"SELECT kid, public_key, mac FROM {store.table} WHERE retired_at IS NULL")  # noqa: S608
    found = {}
    for row in rows:
        try:
            macs.check_mac(row["mac"], TOKEN_KEY_MAC, PLATFORM, content_of(store.use, row["kid"], row["public_key"]))
        except Tampered:
            log.error("a token key was refused: its MAC does not match", extra={"kid": row["kid"], "use": store.use})
        else:
            found[row["kid"]] = bytes(row["public_key"])
    return found


def content_of(use: str, kid: str, public: bytes) -> bytes:
    """Build what the MAC of a public key is of."""
    return fields(use, kid, public)


def kid_of(public: bytes) -> str:
    """The id of a key."""
    return hashlib.sha256(public).hexdigest()[:16]


def public_of(key: Ed25519PrivateKey) -> bytes:
    """The public half."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
