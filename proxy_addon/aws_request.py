"""A request that is going to be signed for AWS: what its client signed it with is taken out, and what it sends is told.

Guarantees: of a signature by a key that the client made up nothing goes out, and the query is written in the one way in
which it is signed. Knows nothing of the library that signs: `aws_signature.py` is loaded for the first such route.
"""

import re
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import quote, unquote_to_bytes

import msgspec

from custody.kit.errors import Invalid
from proxy_addon.aws_chunks import SignedChunks
from proxy_addon.inject import MAX_PAIRS, Headers, TooManyPairs, into_headers, one_name

DIGEST: Final = b"x-amz-content-sha256"
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_UNSIGNED_FRAMES: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_SIGNED_FRAMES: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_LENGTH: Final = b"x-amz-decoded-content-length"
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_NUMBER = re.compile(rb"[0-9]{1,15}")
# Those of which the path is encoded once, and that want the digest in a header.
_STORES: Final = frozenset(("s3", "s3-outposts", "s3-object-lambda", "s3express"))
# A client's own signature, in the head and in an address that was signed.
_SIGNED_WITH: Final = frozenset((b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-s3session-token"))
_SIGNED_IN_QUERY: Final = frozenset(
    f"x-amz-{name}".encode()
    for name in (
        "algorithm",
        "credential",
        "date",
        "expires",
        "signedheaders",
        "signature",
        "security-token",
        "content-sha256",
        "s3session-token",
    )
)


class PayloadUnfit(Invalid):
    """The client signs its body in a way that cannot be repeated; have it send UNSIGNED-PAYLOAD or a SHA-256 of it."""


class Signature(Protocol):
    """A key and what it signs for."""

    service: str

    def sign(self, method: str, host: str, target: bytes, headers: Headers, digest: str) -> tuple[Headers, bytes]:
        """Sign a request as it goes out; give its headers, and the signature."""


class Payload(msgspec.Struct, frozen=True):
    """The body of a request as its signature has it: a digest or a word, or None where it has to be read for that."""

    headers: Headers
    digest: str | None
    # What takes the client's signatures out of the body.
    chunks: SignedChunks | None = None

    def __repr__(self) -> str:
        return f"Payload({self.digest})"


def payload_of(headers: Headers, service: str, *, has_body: bool, changed: bool) -> Payload:
    """Tell what a request says of its body, `changed` where a credential goes into it. Raises PayloadUnfit."""
    headers = [(name, value) for name, value in headers if one_name(name) not in _SIGNED_WITH]
    shown = [value.strip().decode("latin-1") for name, value in headers if one_name(name) == DIGEST]
    if len(shown) > 1:
        raise PayloadUnfit
    said = shown[0] if shown else None
    if said is not None and not (_HASH.fullmatch(said) or said in (UNSIGNED, _UNSIGNED_FRAMES)):
        return _without_signatures(headers, said, has_body=has_body, changed=changed)
    if said is None and service in _STORES:
        # Its place; the signature fills it.
        headers = [*headers, (DIGEST, b"")]
    if changed:
        return Payload(headers, None)
    if said is None and not has_body:
        return Payload(headers, digest_of(b""))
    return Payload(headers, UNSIGNED if said is None and service in _STORES else said)


def digest_of(body: bytes) -> str:
    """The digest of a body that is here."""
    return sha256(body).hexdigest()


def in_store(service: str) -> bool:
    """Say whether a service signs as S3 does."""
    return service in _STORES


def plain_query(query: bytes | None) -> bytes | None:
    """The query with every character escaped that a signature has escaped, and without a client's own signature.

    Servers sign what they have read, each pair decoded as that of a form and encoded again.
    """
    if not query:
        return None
    if query.count(b"&") >= MAX_PAIRS:
        raise TooManyPairs
    kept = []
    for pair in filter(None, query.split(b"&")):
        name, mark, value = (unquote_to_bytes(part.replace(b"+", b" ")) for part in pair.partition(b"="))
        if name.lower() not in _SIGNED_IN_QUERY:
            kept.append(quote(name, safe="").encode() + mark + quote(value, safe="").encode())
    return b"&".join(kept) or None


def _without_signatures(headers: Headers, said: str, *, has_body: bool, changed: bool) -> Payload:
    """The same of a body in chunks that are signed one by one: they go out without, and TLS keeps them whole."""
    lengths = [value.strip() for name, value in headers if one_name(name) == _LENGTH]
    trailed = said == f"{_SIGNED_FRAMES}-TRAILER"
    if changed or not has_body or not (trailed or said == _SIGNED_FRAMES):
        raise PayloadUnfit
    if len(lengths) != 1 or not _NUMBER.fullmatch(lengths[0]):
        raise PayloadUnfit
    chunks = SignedChunks(int(lengths[0]), framed=trailed)
    headers = [
        (name, value) for name, value in headers if name.lower() not in (b"content-length", b"transfer-encoding")
    ]
    if trailed:
        return Payload(into_headers(headers, "Transfer-Encoding", "chunked"), _UNSIGNED_FRAMES, chunks)
    headers = [(name, _without_chunked(name, value)) for name, value in headers if one_name(name) != _LENGTH]
    headers = [(name, value) for name, value in headers if value or name.lower() != b"content-encoding"]
    return Payload(into_headers(headers, "Content-Length", lengths[0].decode()), UNSIGNED, chunks)


def _without_chunked(name: bytes, value: bytes) -> bytes:
    if name.lower() != b"content-encoding":
        return value
    return b", ".join(coding for coding in map(bytes.strip, value.split(b",")) if coding.lower() != b"aws-chunked")
