"""Sealed values and MACs. Normative text: docs/sealed-blob.md, vectors in tests/vectors/sealed_blob.json.

master key -> HKDF per purpose and tenant -> AES-256-GCM per value. The context is authenticated with the
ciphertext, so a blob copied to another row does not open there.
"""

import functools
import hashlib
import hmac
import os
from collections.abc import Callable

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from custody.kit.logs import logger
from custody.protocol.refusals import KeyVersionMissing
from custody.worker.keyring import Keyring

log = logger(__name__)
FORMAT = 1
NONCE_BYTES = 12


class Tampered(Exception):
    """A sealed value or MAC is not what was written; which part was wrong is not said."""


class Context(msgspec.Struct, frozen=True):
    """The context that a blob belongs to. Everything in it is bound to the ciphertext."""

    tenant: str
    owner_kind: str
    owner: str
    purpose: str
    detail: str = ""


def fields(*parts: str | bytes | int) -> bytes:
    """Parts as one unambiguous byte string: each with its length in front."""
    pieces: list[bytes] = []
    for part in parts:
        encoded = part if isinstance(part, bytes) else str(part).encode()
        pieces += (len(encoded).to_bytes(4, "big"), encoded)
    return b"".join(pieces)


class Sealer:
    """Opens and seals with one keyring; the only holder of derived keys."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        # Looks into the file again; set by who keeps the keyring up to date.
        self.look_again: Callable[[], None] = lambda: None
        # Bounded: one entry a tenant and purpose. Deriving costs 4 us, so a miss is no harm.
        self._key = functools.lru_cache(maxsize=4096)(self._derive)
        self._cipher = functools.lru_cache(maxsize=4096)(self._make_cipher)

    @property
    def key_version(self) -> int:
        """The version new values are sealed with."""
        return self._keyring.newest

    @property
    def keyring(self) -> Keyring:
        """The versions that there are."""
        return self._keyring

    def renew(self, keyring: Keyring) -> None:
        """Go on with other versions, from the next value on."""
        self._keyring = keyring

    def seal(self, value: bytes, context: Context) -> bytes:
        """Seal a value for one place; the nonce is random, and a key seals far fewer than 2^32 values."""
        version = self._newest()
        nonce = os.urandom(NONCE_BYTES)
        ciphertext = self._cipher(version, context.purpose, context.tenant).encrypt(
            nonce, value, _bind(context, version)
        )
        return bytes([FORMAT]) + version.to_bytes(4, "big") + nonce + ciphertext

    def open(self, blob: bytes, context: Context) -> bytes:
        """Open a sealed value, or raise Tampered."""
        if len(blob) < 5 + NONCE_BYTES + 16 or blob[0] != FORMAT:
            raise Tampered
        version = int.from_bytes(blob[1:5], "big")
        self._insist_on(version)
        try:
            cipher = self._cipher(version, context.purpose, context.tenant)
            return cipher.decrypt(blob[5 : 5 + NONCE_BYTES], blob[5 + NONCE_BYTES :], _bind(context, version))
        except InvalidTag:
            raise Tampered from None

    def mac(self, purpose: str, tenant: str, content: bytes) -> bytes:
        """A MAC over content, prefixed with the key version it was made with."""
        version = self._newest()
        return version.to_bytes(4, "big") + hmac.digest(self._key(version, purpose, tenant), content, "sha256")

    def mac_like(self, other: bytes, purpose: str, tenant: str, content: bytes) -> bytes:
        """A MAC under the key version of another one, for what must come out the same again."""
        version = int.from_bytes(other[:4], "big")
        self._insist_on(version)
        return version.to_bytes(4, "big") + hmac.digest(self._key(version, purpose, tenant), content, "sha256")

    def check_mac(self, mac: bytes | None, purpose: str, tenant: str, content: bytes) -> None:
        """Raise Tampered unless the MAC is ours, in constant time."""
        version = int.from_bytes((mac or b"")[:4], "big")
        if mac is None or len(mac) != 4 + 32:
            raise Tampered
        self._insist_on(version)
        if not hmac.compare_digest(mac[4:], hmac.digest(self._key(version, purpose, tenant), content, "sha256")):
            raise Tampered

    def fingerprint(self, version: int) -> bytes:
        """By what two files show that they mean the same key by a version; says nothing of the key."""
        return sha256(self._key(version, "key-fingerprint", "platform"))[:16]

    def derive(self, purpose: str) -> Keyring:
        """The keys of another worker: one from each version here; they open none of our values."""
        ring = self._keyring
        return Keyring({v: self._key(v, purpose, "platform") for v in ring.versions}, ring.sealing, ring.known)

    def _newest(self) -> int:
        version = self._keyring.newest
        # Begun on another host: whatever were sealed with an older one now could not be counted on when that ends.
        if version not in self._keyring.versions:
            self.look_again()
            if version not in self._keyring.versions:
                raise _missing(version)
        return version

    def _insist_on(self, version: int) -> None:
        """Raise unless the version is here, in the file by now, or at least one that something was sealed with."""
        if version in self._keyring.versions:
            return
        self.look_again()
        if version in self._keyring.versions:
            return
        if version in self._keyring.known:
            raise _missing(version)
        raise Tampered

    def _derive(self, version: int, purpose: str, tenant: str) -> bytes:
        info = b"custody/v1" + fields(purpose, tenant)
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self._keyring.versions[version])

    def _make_cipher(self, version: int, purpose: str, tenant: str) -> AESGCM:
        return AESGCM(self._key(version, purpose, tenant))


def _missing(version: int) -> KeyVersionMissing:
    """Told in full to the operator, in the log; callers only learn that it is no fault of theirs."""
    cure = "copy its line from the host where it was made, or from the backup of the key"
    log.error("the key file lacks a version that the database is sealed with", extra={"version": version, "cure": cure})
    return KeyVersionMissing()


def _bind(context: Context, version: int) -> bytes:
    return fields(FORMAT, version, context.tenant, context.owner_kind, context.owner, context.purpose, context.detail)


def sha256(content: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(content).digest()
