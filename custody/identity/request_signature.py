"""Signed requests: the text that is signed, the two kinds of signature, and how long one is good.

Normative: docs/api.md. Which keys are tried, and that a signature is used only once, is for the caller.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from custody.kit.errors import Unauthenticated
from custody.kit.instants import read_instant

MAX_AGE: Final = timedelta(minutes=5)
MAX_AHEAD: Final = timedelta(minutes=5)
SKEW: Final = timedelta(seconds=30)
VERSION: Final = "v1"
ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
_END_MILLISECONDS: Final = (_END - _EPOCH) // timedelta(milliseconds=1)
_MILLISECONDS_FROM: Final = 10**11
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,14})\Z")
_HMAC = re.compile(r"[0-9a-f]{64}\Z")
# Two integers of at most 33 bytes in DER are at most 72 bytes.
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,96}={0,2}\Z")

Scheme = Literal["v1", "p256"]


class SignatureMalformed(Unauthenticated):
    """X-Service-Signature must be v1= and 64 lower-case hexadecimal digits, or p256= and a base64 DER signature."""


class RequestTimestampMalformed(Unauthenticated):
    """X-Service-Request-Timestamp must be Unix seconds, milliseconds, or ISO 8601 with a zone."""


class RequestExpiryMalformed(Unauthenticated):
    """X-Service-Request-Expires-At must be Unix seconds, milliseconds, or ISO 8601 with a zone."""


class RequestStale(Unauthenticated):
    """The request's timestamp is more than 5 minutes old; sign the request again."""


class RequestFromTheFuture(Unauthenticated):
    """The request's timestamp is more than 30 seconds in the future; check the clock."""


class RequestExpired(Unauthenticated):
    """The request has expired; sign it again."""


class RequestExpiryTooFar(Unauthenticated):
    """The request's expiry is more than 5 minutes in the future; choose an earlier one."""


class Signature(msgspec.Struct, frozen=True):
    """The value of X-Service-Signature: an HMAC of 32 bytes, or an ECDSA signature in DER."""

    scheme: Scheme
    value: bytes

    @property
    def mark(self) -> bytes:
        """The 32 bytes by which a used signature is known again.

        From an ECDSA signature (r, s) anybody makes a second valid one, (r, -s), without the key. Both have one mark,
        or a request that was overheard could be sent once more.
        """
        if self.scheme == VERSION:
            return self.value
        r, s = decode_dss_signature(self.value)
        return hashlib.sha256(r.to_bytes(32) + min(s, ORDER - s).to_bytes(32)).digest()


def canonical(  # noqa: PLR0913, PLR0917 - the parts of the signed text, in their order
    method: str,
    path_with_query: str,
    tenant: str,
    timestamp: str | None,
    expires_at: str | None,
    idempotency_key: str | None,
    body: bytes,
) -> bytes:
    """The text that is signed; the two times and the key as in their headers, None where there is none."""
    return canonical_of(
        method, path_with_query, tenant, timestamp, expires_at, idempotency_key, hashlib.sha256(body).hexdigest()
    )


def canonical_of(  # noqa: PLR0913, PLR0917 - the same
    method: str,
    path_with_query: str,
    tenant: str,
    timestamp: str | None,
    expires_at: str | None,
    idempotency_key: str | None,
    body_sha256: str,
) -> bytes:
    """The same for who has only the body's hash, in lower-case hexadecimal digits."""
    parts = (method, path_with_query, tenant, timestamp or "", expires_at or "", idempotency_key or "")
    # A line end inside a part would move what stands behind it to the next field's place.
    if any("\n" in part for part in parts):
        raise SignatureMalformed("A signed part of the request contains a line break.")
    return "\n".join((VERSION, *parts, body_sha256)).encode()


def parse_header(value: str) -> Signature:
    """Read X-Service-Signature, or raise SignatureMalformed; every signature has one spelling only."""
    scheme, _, text = value.partition("=")
    if scheme == "v1" and _HMAC.match(text):
        return Signature("v1", bytes.fromhex(text))
    if scheme == "p256" and _BASE64.match(text):
        return Signature("p256", _read_der(text))
    raise SignatureMalformed


def verify(signature: Signature, key: bytes | EllipticCurvePublicKey, content: bytes) -> bool:
    """Say whether this key made the signature of this content; a key of the other kind did not.

    An HMAC key is the UTF-8 of the secret as it was shown, and the comparison takes the same time wherever it fails.
    """
    if isinstance(key, bytes):
        # An empty key is a lost one, and anybody can sign with it.
        expected = hmac.digest(key, content, "sha256")
        return signature.scheme == "v1" and bool(key) and hmac.compare_digest(expected, signature.value)
    if signature.scheme != "p256" or not isinstance(key.curve, SECP256R1):
        return False
    try:
        key.verify(signature.value, content, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def moment(text: str) -> datetime:
    """The moment a time header names, in UTC, or RequestTimestampMalformed."""
    found = _read_moment(text)
    if found is None:
        raise RequestTimestampMalformed
    return found


def check_times(timestamp: str | None, expires_at: str | None, now: datetime) -> None:
    """Raise unless each time that is given allows the request now; whether one must be given is for the caller."""
    if timestamp is not None:
        made = moment(timestamp)
        if made > now + SKEW:
            raise RequestFromTheFuture
        if now - made > MAX_AGE:
            raise RequestStale
    if expires_at is not None:
        ends = _expiry(expires_at)
        if ends <= now:
            raise RequestExpired
        if ends > now + MAX_AHEAD:
            raise RequestExpiryTooFar


def until(timestamp: str | None, expires_at: str | None) -> datetime | None:
    """The last moment at which `check_times` can pass, for how long a used signature is kept; None means always."""
    ends = [moment(timestamp) + MAX_AGE] if timestamp is not None else []
    if expires_at is not None:
        ends.append(_expiry(expires_at))
    return min(ends, default=None)


def _expiry(text: str) -> datetime:
    found = _read_moment(text)
    if found is None:
        raise RequestExpiryMalformed
    return found


def _read_moment(text: str) -> datetime | None:
    if _NUMBER.match(text):
        number = int(text)
        milliseconds = number if number >= _MILLISECONDS_FROM else number * 1000
        found = _EPOCH + timedelta(milliseconds=milliseconds) if milliseconds < _END_MILLISECONDS else None
    else:
        found = read_instant(text)
    # Nothing can be added to the last moments of the calendar.
    return found if found is not None and found < _END else None


def _read_der(text: str) -> bytes:
    try:
        raw = b64decode(text, validate=True)
        r, s = decode_dss_signature(raw)
    except ValueError:
        raise SignatureMalformed from None
    # Spare bits in base64 and other forms of an integer would be second spellings of one signature.
    if not (0 < r < ORDER and 0 < s < ORDER) or b64encode(raw).decode() != text or encode_dss_signature(r, s) != raw:
        raise SignatureMalformed
    return raw
