"""Keys that sign statements (receipts, checkpoints), one for each use; no token is ever verified with one.

A key that minted tokens too could be made to say something else: what one use signs can mean nothing to another,
because each has a key of its own, and its JWK names the use.
"""

import base64
import hashlib
import hmac
from typing import Final

import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from custody.kit.logs import logger
from custody.worker.sealing import Context, Sealer, Tampered

log = logger(__name__)
PLATFORM: Final = "platform"
# The `use` of the JWK; the sealed value's purpose is the same word with `-key` behind it.
USES: Final = ("receipt", "checkpoint")
# Any number that only this use case uses: two signers that start at once make one key of a use, not two.
_ADVISORY_LOCK = 7_160_011


class StatementKey:
    """The private key of one use."""

    def __init__(self, use: str, key: Ed25519PrivateKey) -> None:
        self.use = use
        self.public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.kid = hashlib.sha256(self.public).hexdigest()[:16]
        self._key = key
        # Of this key and not of the master key: what it marks is in rows that nobody can write again when that changes.
        self._mac_key = HKDF(SHA256(), 32, salt=None, info=b"custody/v1 record").derive(key.private_bytes_raw())

    def mac(self, content: bytes) -> bytes:
        """A MAC by which the signer knows again what it is to state later."""
        return hmac.digest(self._mac_key, content, "sha256")

    def sign(self, content: bytes) -> bytes:
        """The 64 bytes of an Ed25519 signature over the content itself."""
        return self._key.sign(content)


class StatementKeys:
    """The key of each use, and the public halves of all that ever signed."""

    def __init__(self, keys: dict[str, list[StatementKey]]) -> None:
        self._keys = keys

    def of(self, use: str) -> StatementKey:
        """The key that signs for a use."""
        return self._keys[use][0]

    def check_mac(self, use: str, mac: bytes, content: bytes) -> None:
        """Raise Tampered unless a key of this use made the MAC."""
        if not any(hmac.compare_digest(key.mac(content), mac) for key in self._keys[use]):
            raise Tampered

    def public(self, use: str) -> list[bytes]:
        """The public halves of a use, of keys before this one too."""
        return [key.public for key in self._keys[use]]

    def jwks(self, issuer: str) -> list[dict[str, str]]:
        """The public keys as JWKs (RFC 8037), each with its own `use`."""
        common = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "issuer": issuer}
        return [
            {**common, "use": key.use, "kid": key.kid, "x": base64.urlsafe_b64encode(key.public).rstrip(b"=").decode()}
            for use in USES
            for key in self._keys[use]
        ]


async def load_or_make(connection: asyncpg.Connection, sealer: Sealer) -> StatementKeys:
    """The key of each use, made on the first start. Raises Tampered when the master key opens none of a use."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('custody.tenant', $1, true), pg_advisory_xact_lock($2)", PLATFORM, _ADVISORY_LOCK
        )
        return StatementKeys({use: await _of_use(connection, sealer, use) for use in USES})


async def _of_use(connection: asyncpg.Connection, sealer: Sealer, use: str) -> list[StatementKey]:
    rows = await connection.fetch(
        "SELECT owner, blob FROM sealed WHERE tenant_id = $1 AND owner_kind = 'token_key' AND purpose = $2 "
        "ORDER BY owner",
        PLATFORM,
        _purpose(use),
    )
    if not rows:
        return [await _make(connection, sealer, use)]
    keys = []
    for row in rows:
        try:
            seed = sealer.open(row["blob"], _context(use, row["owner"]))
            keys.append(StatementKey(use, Ed25519PrivateKey.from_private_bytes(seed)))
        except Tampered:
            log.error("a statement key was refused: it is not one that the signer wrote", extra={"kid": row["owner"]})
    if not keys:
        raise Tampered
    return keys


async def _make(connection: asyncpg.Connection, sealer: Sealer, use: str) -> StatementKey:
    key = Ed25519PrivateKey.generate()
    made = StatementKey(use, key)
    await connection.execute(
        "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
        "VALUES ($1, 'token_key', $2, $3, $4, $5)",
        PLATFORM,
        made.kid,
        _purpose(use),
        sealer.key_version,
        sealer.seal(key.private_bytes_raw(), _context(use, made.kid)),
    )
    return made


def _purpose(use: str) -> str:
    return f"{use}-key"


def _context(use: str, kid: str) -> Context:
    return Context(PLATFORM, "token_key", kid, _purpose(use))
