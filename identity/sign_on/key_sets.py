"""Key sets of OIDC issuers (RFC 7517), read strictly. Pure.

A member that we do not verify with is skipped (RFC 7517 5): one for encryption, of another kind, too weak, without an
id that could be used, or malformed. It verifies nothing, and it does not keep the good one beside it from verifying.
The set as a whole is refused where nothing good is left, where it is too large, and where any member shows a secret:
an issuer that publishes one has lost control of its keys.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from custody.identity.oidc_provider import MAX_KEY_SET
from custody.identity.strict_json import NotStrict, read_object

MAX_KEYS: Final = 50
MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
_MAX_EXPONENT_BITS: Final = 32
_MAX_KID: Final = 255
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*\Z")
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# Curve, its algorithm, the bytes of a coordinate.
_CURVES: Final = {
    "P-256": (SECP256R1, "ES256", 32),
    "P-384": (SECP384R1, "ES384", 48),
    "P-521": (SECP521R1, "ES512", 66),
}
_ED25519_BYTES: Final = 32
# Of private keys of every kind, and of shared secrets.
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
# What a key is made of; the rest of an entry, such as certificates, is dropped.
_KEPT: Final = ("kty", "kid", "alg", "crv", "n", "e", "x", "y")

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
KeySetProblem = Literal[
    "set_too_large",
    "set_malformed",
    "set_empty",
    "set_too_many_keys",
    "set_key_malformed",
    "set_key_private",
    "set_key_weak",
    "set_key_twice",
]


class BadKeySet(Exception):
    """The set is not taken; `problem` is the short word for why."""

    def __init__(self, problem: KeySetProblem) -> None:
        self.problem = problem
        super().__init__(problem)


class Key(msgspec.Struct, frozen=True):
    """A public key and what it may verify."""

    kid: str | None
    algorithms: tuple[str, ...]
    public: PublicKey


class KeySet(msgspec.Struct, frozen=True):
    """The keys of an issuer; of two with one id the newer counts."""

    keys: tuple[Key, ...] = ()

    def find(self, kid: str, algorithm: str) -> Key | None:
        """The key with this id: the one for the algorithm, where an issuer gives keys of several kinds one id."""
        named = [key for key in self.keys if key.kid == kid]
        return next((key for key in named if algorithm in key.algorithms), named[0] if named else None)

    def with_former(self, former: "KeySet") -> "KeySet":
        """These keys, and behind them those of a former set."""
        return KeySet((*self.keys, *former.keys))


def read(content: bytes) -> KeySet:
    """The signing keys of a set, or BadKeySet."""
    return KeySet(tuple(key for key, _ in _read(content)))


def condense(content: bytes) -> str:
    """The set with nothing but its signing keys, in a form that is equal for equal keys; or BadKeySet."""
    entries = sorted((entry for _, entry in _read(content)), key=msgspec.json.encode)
    return msgspec.json.encode({"keys": entries}).decode()


def _read(content: bytes) -> list[tuple[Key, dict[str, str]]]:
    if len(content) > MAX_KEY_SET:
        raise BadKeySet("set_too_large")
    try:
        entries = read_object(content).get("keys")
    except NotStrict:
        raise BadKeySet("set_malformed") from None
    if not isinstance(entries, list):
        raise BadKeySet("set_malformed")
    if len(entries) > MAX_KEYS:
        raise BadKeySet("set_too_many_keys")
    members = [entry for entry in entries if isinstance(entry, dict)]
    # Looked at in every member, also in those that are skipped.
    if any(_PRIVATE & entry.keys() or entry.get("kty") == "oct" for entry in members):
        raise BadKeySet("set_key_private")
    found: list[tuple[Key, dict[str, str]]] = []
    problems: list[KeySetProblem] = [] if len(members) == len(entries) else ["set_key_malformed"]
    for entry in members:
        try:
            key = _key(entry) if _is_for_signing(entry) else None
        except BadKeySet as bad:
            problems.append(bad.problem)
            continue
        if key is not None:
            found.append((key, {name: entry[name] for name in _KEPT if name in entry}))
    plain = _told_apart(found)
    if not plain:
        raise BadKeySet("set_key_twice" if found else problems[0] if problems else "set_empty")
    return plain


def _told_apart(found: list[tuple[Key, dict[str, str]]]) -> list[tuple[Key, dict[str, str]]]:
    """Leave out keys that a token cannot name: different ones of one id for one algorithm. Of equal ones keep one."""
    once = [pair for at, pair in enumerate(found) if pair[1] not in (other for _, other in found[:at])]
    return [(key, entry) for key, entry in once if not any(_is_confused(key, other) for other, _ in once)]


def _is_confused(key: Key, other: Key) -> bool:
    same_name = key.kid is not None and key.kid == other.kid and bool({*key.algorithms} & {*other.algorithms})
    return same_name and key.public != other.public


def _is_for_signing(entry: Mapping[str, Any]) -> bool:
    use, operations = entry.get("use", "sig"), entry.get("key_ops", ["verify"])
    return use == "sig" and isinstance(operations, list) and "verify" in operations


def _key(entry: Mapping[str, Any]) -> Key | None:
    """The key, or None if it is of a kind that we do not verify with; BadKeySet if it is of one and odd."""
    kid = entry.get("kid")
    if "kid" in entry and not (isinstance(kid, str) and 0 < len(kid) <= _MAX_KID):
        raise BadKeySet("set_key_malformed")
    made = _public(entry)
    if made is None:
        return None
    public, algorithms = made
    if (named := entry.get("alg")) is not None:
        if not isinstance(named, str) or named not in algorithms:
            # Meant for something else, such as RSA-OAEP.
            return None
        algorithms = (named,)
    return Key(kid, algorithms, public)


def _public(entry: Mapping[str, Any]) -> tuple[PublicKey, tuple[str, ...]] | None:
    kind, curve = entry.get("kty"), entry.get("crv")
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        raise BadKeySet("set_key_malformed")
    try:
        if kind == "RSA":
            return _rsa(entry), _RSA
        if kind == "EC" and curve in _CURVES:
            made, algorithm, size = _CURVES[curve]
            x, y = (int.from_bytes(_bytes(entry, name, size)) for name in ("x", "y"))
            return EllipticCurvePublicNumbers(x, y, made()).public_key(), (algorithm,)
        if kind == "OKP" and curve == "Ed25519":
            return Ed25519PublicKey.from_public_bytes(_bytes(entry, "x", _ED25519_BYTES)), ("EdDSA",)
    except (ValueError, UnsupportedAlgorithm):
        raise BadKeySet("set_key_malformed") from None
    return None


def _rsa(entry: Mapping[str, Any]) -> RSAPublicKey:
    modulus, exponent = int.from_bytes(_bytes(entry, "n")), int.from_bytes(_bytes(entry, "e"))
    if not MIN_RSA_BITS <= modulus.bit_length() <= MAX_RSA_BITS:
        raise BadKeySet("set_key_weak")
    if exponent.bit_length() > _MAX_EXPONENT_BITS:
        # Verifying takes time by its length.
        raise BadKeySet("set_key_malformed")
    return RSAPublicNumbers(exponent, modulus).public_key()


def _bytes(entry: Mapping[str, Any], name: str, size: int | None = None) -> bytes:
    text = entry.get(name)
    if not isinstance(text, str) or not _BASE64URL.match(text):
        raise ValueError
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise ValueError from None
    if size is not None and len(found) != size:
        raise ValueError
    return found
