"""Signing keys and tokens, honest ones and such as no library would make.

A header or a payload is a mapping, or bytes that go in as they are: `b'{"sub": "a", "sub": "b"}'`. A single value that
no JSON library writes is a `msgspec.Raw`: `{"exp": msgspec.Raw(b"1e400")}`.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Literal

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512"]
Part = Mapping[str, Any] | bytes
_CURVES: dict[str, ec.EllipticCurve] = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}


class SigningKey:
    """A new private key for one algorithm, with the name under which it is published."""

    def __init__(self, alg: Algorithm = "RS256", kid: str | None = None, bits: int = 2048) -> None:
        self.alg = alg
        curve = _CURVES.get(alg)
        self.private = ec.generate_private_key(curve) if curve else rsa.generate_private_key(65537, bits)
        self.public_pem = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.kid = kid or hashlib.sha256(self.public_pem).hexdigest()[:16]

    @property
    def jwk(self) -> dict[str, Any]:
        """The public part, as a key set shows it."""
        return self._jwk(self.private.public_key())

    @property
    def private_jwk(self) -> dict[str, Any]:
        """The private part, which a key set must never show."""
        return self._jwk(self.private)

    def sign(self, content: bytes) -> bytes:
        """A signature as tokens have it."""
        return jwt.get_algorithm_by_name(self.alg).sign(content, self.private)

    def _jwk(self, key: object) -> dict[str, Any]:
        made: Any = jwt.get_algorithm_by_name(self.alg).to_jwk(key, as_dict=True)
        return {name: value for name, value in made.items() if name != "key_ops"} | {
            "kid": self.kid,
            "alg": self.alg,
            "use": "sig",
        }


def base64url(content: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def compact(header: Part, payload: Part, sign: Callable[[bytes], bytes]) -> str:
    """Put a token together, whatever its header says."""
    content = f"{base64url(_bytes(header))}.{base64url(_bytes(payload))}"
    return f"{content}.{base64url(sign(content.encode()))}"


def sign_token(payload: Part, key: SigningKey, **header: object) -> str:
    """A token of this key; a field of its header that is None is left out."""
    fields = {"alg": key.alg, "kid": key.kid, "typ": "JWT"} | header
    return compact({name: value for name, value in fields.items() if value is not None}, payload, key.sign)


def token_without_signature(payload: Part, alg: str = "none", **header: object) -> str:
    """A token with an empty signature."""
    return compact({"alg": alg} | header, payload, lambda _: b"")


def hmac_signed(payload: Part, secret: bytes, **header: object) -> str:
    """A token of HS256 whose secret may be a public key."""
    fields = {"alg": "HS256", "typ": "JWT"} | header
    return compact(fields, payload, lambda content: hmac.digest(secret, content, "sha256"))


def token_in_the_clear(payload: Part, key: SigningKey) -> str:
    """A token whose payload stands in it as it is. RFC 7797."""
    head = base64url(_bytes({"alg": key.alg, "kid": key.kid, "b64": False, "crit": ["b64"]}))
    content = f"{head}.{_bytes(payload).decode()}"
    return f"{content}.{base64url(key.sign(content.encode()))}"


def _bytes(part: Part) -> bytes:
    return part if isinstance(part, bytes) else msgspec.json.encode(part)
