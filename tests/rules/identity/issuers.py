"""An issuer's keys and tokens, made with the libraries that issuers use and by hand where those would refuse."""

import base64
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from identity.sign_on.id_tokens import Expected

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ISSUER = "https://idp.example.com"
CLIENT = "custody"
NONCE = "n-0S6_WzA2Mj"
EXPECTED = Expected(issuer=ISSUER, client_id=CLIENT, audience=(CLIENT,), nonce=NONCE, now=NOW)


@cache
def rsa_key(bits: int = 2048, name: str = "") -> rsa.RSAPrivateKey:
    """A key; another one for another name."""
    return rsa.generate_private_key(65_537, bits)


@cache
def ec_key(curve: str = "P-256") -> ec.EllipticCurvePrivateKey:
    """A key of a curve."""
    curves = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1, "secp256k1": ec.SECP256K1}
    return ec.generate_private_key(curves[curve]())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    """A key of Ed25519."""
    return ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, kid: str | None = "k", *, private: bool = False, **more: Any) -> dict[str, Any]:
    """A key as an entry of a set."""
    algorithm: Any = (
        RSAAlgorithm
        if isinstance(key, rsa.RSAPrivateKey)
        else ECAlgorithm
        if isinstance(key, ec.EllipticCurvePrivateKey)
        else OKPAlgorithm
    )
    entry = algorithm.to_jwk(key if private else key.public_key(), as_dict=True)
    entry.pop("key_ops", None)
    return {**entry, **({} if kid is None else {"kid": kid}), **more}


def key_set(*entries: dict[str, Any]) -> bytes:
    """A set as it is served."""
    return msgspec.json.encode({"keys": list(entries)})


def claims(**changed: Any) -> dict[str, Any]:
    """Make the claims of a good token; None leaves something out."""
    now = int(NOW.timestamp())
    good = {"iss": ISSUER, "aud": CLIENT, "sub": "user-1", "nonce": NONCE, "iat": now, "exp": now + 300}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def token(said: dict[str, Any], key: Any = None, alg: str = "RS256", **header: Any) -> str:
    """A token signed by the issuer, under the key `k`."""
    return jwt.encode(said, key or rsa_key(), algorithm=alg, headers={"kid": "k", **header})


def by_hand(header: bytes, payload: bytes, key: Any = None) -> str:
    """A token whose header and payload are these bytes, signed with RS256."""
    signed = f"{encode(header)}.{encode(payload)}"
    algorithm = RSAAlgorithm(RSAAlgorithm.SHA256)
    return f"{signed}.{encode(algorithm.sign(signed.encode(), key or rsa_key()))}"


def encode(content: bytes) -> str:
    """Base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
