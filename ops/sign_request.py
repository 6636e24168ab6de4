"""`custody sign-request`: the headers by which signers authorise a request, and keys for them.

Nothing is sent. The text that is signed is that of docs/api.md; the path and the body are taken byte for
byte, so what is sent must be the same bytes.
"""

import os
import re
import shlex
import stat
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hmac
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from custody.identity import request_signature
from custody.kit import clock, ids

# A P-256 private key, or the secret of an HMAC signer as it was shown.
type Key = EllipticCurvePrivateKey | bytes

NEW_KEY: Final = "new-key"
_METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
_URL = re.compile(r"(?P<server>https?://[!-.0->@-~]+)?(?P<path>/[!-~]*)\Z")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_IDEMPOTENCY_KEY = re.compile(r"[ -~]{8,255}\Z")
_READ: Final = ("idempotency-key", "x-service-request-timestamp", "x-service-request-expires-at")
_MAX_SIGNERS: Final = 32
_MAX_KEY_BYTES: Final = 16 * 1024


class CannotSign(RuntimeError):
    """The request was not signed; the message says what to change."""


class Request(NamedTuple):
    """A request as it will be sent."""

    method: str
    path: str
    body: bytes
    idempotency_key: str
    timestamp: str
    expires_at: str | None = None

    def text(self, tenant: str) -> bytes:
        """The text that is signed."""
        return request_signature.canonical(
            self.method, self.path, tenant, self.timestamp, self.expires_at, self.idempotency_key, self.body
        )


def run(chosen: Namespace) -> int:
    """Print the headers of a signed request, or make a key; 2 when nothing was signed."""
    try:
        if chosen.method == NEW_KEY:
            return _new_key(Path(chosen.target))
        keys = _keys(chosen)
        server, request = _request(chosen)
        headers = sign(request, chosen.tenant, keys, chosen.quorum)
    except CannotSign as problem:
        print(f"custody sign-request: {problem}", file=sys.stderr)
        return 2
    print(_format(chosen, server, request, headers))
    return 0


def sign(request: Request, tenant: str, keys: Mapping[str, Key], quorum: str | None = None) -> dict[str, str]:
    """The headers of a request that one signer authorises, or several for a quorum."""
    headers = {
        "Idempotency-Key": request.idempotency_key,
        "X-Service-Request-Timestamp": request.timestamp,
    }
    if request.expires_at is not None:
        headers["X-Service-Request-Expires-At"] = request.expires_at
    text = request.text(tenant)
    made = [{"signerId": name, "signature": signature(key, text)} for name, key in keys.items()]
    if quorum is None:
        (only,) = made
        return headers | {"X-Service-Signer-Id": only["signerId"], "X-Service-Signature": only["signature"]}
    return headers | {
        "X-Service-Key-Quorum-Id": quorum,
        "X-Service-Key-Quorum-Signatures": msgspec.json.encode(made).decode(),
    }


def signature(key: Key, text: bytes) -> str:
    """A signature as its header spells it."""
    if isinstance(key, bytes):
        code = hmac.HMAC(key, SHA256())
        code.update(text)
        return f"v1={code.finalize().hex()}"
    return f"p256={b64encode(key.sign(text, ECDSA(SHA256()))).decode()}"


def public_key(key: EllipticCurvePrivateKey) -> str:
    """The public key as a signer is registered with it: SPKI in base64."""
    return b64encode(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def _new_key(file: Path) -> int:
    key = generate_private_key(SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        # Never over a key that exists, and no moment in which others may read it.
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(pem)
    except FileExistsError:
        raise CannotSign(f"{file} exists and is not overwritten; choose another name") from None
    except OSError as problem:
        raise CannotSign(f"cannot write {file}: {problem.strerror}") from None
    print(public_key(key))
    print(
        f"The private key is in {file}; keep it where only the program that signs reads it. The line on standard "
        "output is the `publicKey` of a signer with the `keyType` p256.",
        file=sys.stderr,
    )
    return 0


def _keys(chosen: Namespace) -> dict[str, Key]:
    if not chosen.signer:
        raise CannotSign("name the signer with --signer ID")
    if chosen.quorum is not None and not _UUID.match(chosen.quorum):
        raise CannotSign(f"--quorum {chosen.quorum}: not an id; GET /agents/<agent>/key-quorums lists them")
    if chosen.quorum is None and len(chosen.signer) > 1:
        raise CannotSign("several signers authorise together only as a quorum: name it with --quorum ID")
    if len(chosen.signer) > _MAX_SIGNERS:
        raise CannotSign(f"at most {_MAX_SIGNERS} signers may be shown at once; leave some out")
    keys: dict[str, Key] = {}
    for word in chosen.signer:
        name, key = _named_key(chosen, word)
        if name in keys:
            raise CannotSign(f"--signer {name} is there twice; a signer counts once")
        keys[name] = key
    return keys


def _named_key(chosen: Namespace, word: str) -> tuple[str, Key]:
    name, equals, file = word.partition("=")
    if not _UUID.match(name):
        raise CannotSign(f"--signer {name}: not an id; GET /agents/<agent>/signers lists them")
    apart = chosen.key or chosen.secret_file
    if equals and apart is not None:
        raise CannotSign(f"--signer {name}=FILE names its file already; leave out --key and --secret-file")
    if equals:
        content = _private(Path(file))
        return name, _private_key(Path(file), content) if _is_pem(content) else _secret(Path(file), content)
    if apart is None or len(chosen.signer) > 1:
        cure = "--signer ID=FILE for each" if chosen.quorum else "--key FILE or --secret-file FILE"
        raise CannotSign(f"name what signer {name} signs with: {cure}")
    content = _private(apart)
    return name, _private_key(apart, content) if chosen.key is not None else _secret(apart, content)


def _private(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise CannotSign(f"other users can read {file}: chmod 0600 {file}")
            content = opened.read(_MAX_KEY_BYTES + 1)
    except OSError as problem:
        raise CannotSign(f"cannot read {file}: {problem.strerror}") from None
    if len(content) > _MAX_KEY_BYTES:
        raise CannotSign(f"{file} is too large for a key")
    return content


def _is_pem(content: bytes) -> bool:
    return content.lstrip().startswith(b"-----BEGIN ")


def _private_key(file: Path, content: bytes) -> EllipticCurvePrivateKey:
    make = f"make one with `custody sign-request {NEW_KEY} FILE`"
    try:
        key = load_pem_private_key(content, None)
    except TypeError:
        raise CannotSign(f"{file} has a passphrase; `openssl pkey -in FILE -out OTHER` writes it without") from None
    except (ValueError, UnsupportedAlgorithm):
        # Never what the file holds instead.
        raise CannotSign(f"{file} contains no private key in PEM; {make}") from None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise CannotSign(f"{file} contains a key of another kind; signers have P-256 keys: {make}")
    return key


def _secret(file: Path, content: bytes) -> bytes:
    if _is_pem(content):
        raise CannotSign(f"{file} contains a PEM, not a secret; name it with --key")
    # As it was shown: a line end at its end is the editor's.
    secret = content.strip()
    if not secret or not secret.isascii() or len(secret.split()) != 1:
        raise CannotSign(f"{file} contains no secret; write the signer's `credentialSecret` into it, and nothing else")
    return secret


def _request(chosen: Namespace) -> tuple[str | None, Request]:
    if not chosen.tenant or not chosen.tenant.isprintable():
        raise CannotSign("name the tenant with --tenant ID; it is a line of the text that is signed")
    method = chosen.method.upper()
    if method not in _METHODS:
        raise CannotSign(f"{chosen.method} is not signed; the method is one of {', '.join(_METHODS)}")
    server, path = _address(chosen.target)
    heads = _heads(chosen.header)
    key = _one("--idempotency-key", chosen.idempotency_key, heads.get(_READ[0])) or ids.new_uuid()
    if not _IDEMPOTENCY_KEY.match(key) or key != key.strip():
        raise CannotSign("--idempotency-key has 8 to 255 printable ASCII characters")
    timestamp = _one("--timestamp", chosen.timestamp, heads.get(_READ[1]))
    expires_at = _one("--expires-at", chosen.expires_at, heads.get(_READ[2]))
    for option, value in (("--timestamp", timestamp), ("--expires-at", expires_at)):
        _check_time(option, value)
    made_at = timestamp or str(int(clock.now().timestamp()))
    return server, Request(method, path, _body(chosen.body), key, made_at, expires_at)


def _address(target: str) -> tuple[str | None, str]:
    found = _URL.match(target)
    if found is None:
        raise CannotSign(
            f"{target!r} is no URL and no path; write http://HOST/path or /path, with everything but printable ASCII "
            "percent-encoded"
        )
    path = found["path"]
    if "#" in path:
        raise CannotSign("a URL is sent without what follows `#`; leave that out, or write it as %23")
    if {".", ".."}.intersection(path.partition("?")[0].split("/")):
        raise CannotSign("most clients send a path without `.` and `..`, and not as it stands here; write it without")
    return found["server"], path


def _heads(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon:
            raise CannotSign(f"--header takes 'Name: value'; {name[:32]!r} has no colon")
        name = name.strip().lower()
        if name in _READ and name in found:
            raise CannotSign(f"the header {name} is there twice; send it once")
        found[name] = value.strip()
    return found


def _one(option: str, word: str | None, header: str | None) -> str | None:
    if word is not None and header is not None and word != header:
        raise CannotSign(f"{option} and the header of the same meaning differ; give one of them")
    return word if word is not None else header


def _check_time(option: str, value: str | None) -> None:
    try:
        if value is not None:
            request_signature.moment(value)
    except request_signature.RequestTimestampMalformed:
        raise CannotSign(
            f"{option} {value!r} is no time; write Unix seconds, milliseconds, or ISO 8601 with a zone, such as "
            "2026-01-01T00:00:00Z"
        ) from None


def _body(name: str | None) -> bytes:
    if name is None:
        return b""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as problem:
        raise CannotSign(f"cannot read {name}: {problem.strerror}") from None


def _format(chosen: Namespace, server: str | None, request: Request, headers: Mapping[str, str]) -> str:
    if chosen.output == "json":
        return msgspec.json.encode(headers).decode()
    if chosen.output == "headers":
        return "\n".join(f"{name}: {value}" for name, value in headers.items())
    # What is secret, and what was not given, stays a variable of the shell.
    address = shlex.quote(server + request.path) if server else f'"$SERVICE_URL"{shlex.quote(request.path)}'
    lines = [f"curl -X {request.method} {address}", '-H "Authorization: Bearer $SERVICE_AGENT_TOKEN"']
    if request.body:
        lines += ["-H 'Content-Type: application/json'", f"--data-binary {_body_of_curl(chosen.body, request.body)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    return " \\\n  ".join(lines)


def _body_of_curl(name: str, body: bytes) -> str:
    if name != "-":
        return shlex.quote(f"@{name}")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    # curl reads a leading @ as the name of a file; and no word of a shell has a zero byte.
    return "@-" if "\0" in text or text.startswith("@") else shlex.quote(text)
