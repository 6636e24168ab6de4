"""The envelope in which a private key travels: X25519, HKDF-SHA256, AES-256-GCM. docs/wallets.md. Pure.

A client seals to the one-time key of a session; only the signer, which has the other half, opens it. That half is
never in a log, an answer or a repr.
"""

import base64
import binascii
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ALGORITHM: Final = "X25519-HKDF-SHA256-AES-256-GCM"
# SubjectPublicKeyInfo of id-X25519; the 32 bytes of the key follow.
_SPKI: Final = bytes.fromhex("302a300506032b656e032100")
_KEY_BYTES: Final = 32
_IV_BYTES: Final = 12
_TAG_BYTES: Final = 16
MAX_CIPHERTEXT: Final = 4_096


class EnvelopeRefused(ValueError):
    """It does not open: a field has the wrong form, or the key is another one. Nobody is told which."""


class Envelope(msgspec.Struct, frozen=True):
    """The four fields as they came, in base64url without padding."""

    ephemeral_public_key: str
    iv: str
    ciphertext: str
    tag: str

    def __repr__(self) -> str:
        return "Envelope()"


class Bound(msgspec.Struct, frozen=True):
    """The binding of a session; of a person's own wallet also who they are, its index, and their app client."""

    session: str
    tenant: str
    agent: str
    chain: str
    user: str | None = None
    wallet_index: int = 0
    app_client: str | None = None

    @property
    def info(self) -> bytes:
        """Build HKDF's info. Ids may have colons, so two bounds may give one text: the session keeps them apart."""
        if self.user is None:
            return f"service:vault-import:v1:{self.tenant}:{self.agent}:{self.chain}:{self.session}".encode()
        return (
            f"service:user-wallet-import:v1:{self.tenant}:{self.user}:{self.agent}:{self.chain}:{self.wallet_index}:"
            f"{self.app_client or ''}:{self.session}"
        ).encode()


def new_key() -> tuple[bytes, str]:
    """A one-time key: its private half, 32 bytes, and its public half as SPKI in base64url."""
    key = X25519PrivateKey.generate()
    return key.private_bytes_raw(), encode(_SPKI + key.public_key().public_bytes_raw())


def open_envelope(envelope: Envelope, private: bytes, bound: Bound) -> bytes:
    """Open an envelope; EnvelopeRefused for one that was not sealed to this key for this session."""
    spki = _decode(envelope.ephemeral_public_key, len(_SPKI) + _KEY_BYTES)
    iv, tag = _decode(envelope.iv, _IV_BYTES), _decode(envelope.tag, _TAG_BYTES)
    ciphertext = _decode(envelope.ciphertext)
    if not spki.startswith(_SPKI) or not 1 <= len(ciphertext) <= MAX_CIPHERTEXT:
        raise EnvelopeRefused
    try:
        # A point of low order gives a shared key that everybody knows; the library refuses it.
        shared = X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(spki[len(_SPKI) :])
        )
        key = HKDF(SHA256(), 32, salt=None, info=bound.info).derive(shared)
        return AESGCM(key).decrypt(iv, ciphertext + tag, bound.session.encode())
    except (InvalidTag, ValueError):
        raise EnvelopeRefused from None


def seal(plaintext: bytes, public_key: str, bound: Bound, iv: bytes) -> Envelope:
    """Seal a key as a client does; `iv` are 12 fresh random bytes."""
    theirs = X25519PublicKey.from_public_bytes(_decode(public_key, len(_SPKI) + _KEY_BYTES)[len(_SPKI) :])
    ephemeral = X25519PrivateKey.generate()
    key = HKDF(SHA256(), 32, salt=None, info=bound.info).derive(ephemeral.exchange(theirs))
    made = AESGCM(key).encrypt(iv, plaintext, bound.session.encode())
    public = encode(_SPKI + ephemeral.public_key().public_bytes_raw())
    return Envelope(public, encode(iv), encode(made[:-_TAG_BYTES]), encode(made[-_TAG_BYTES:]))


def encode(raw: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str, length: int | None = None) -> bytes:
    """The bytes of base64url in its one spelling, of this length."""
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise EnvelopeRefused from None
    if encode(raw) != text or (length is not None and len(raw) != length):
        raise EnvelopeRefused
    return raw
