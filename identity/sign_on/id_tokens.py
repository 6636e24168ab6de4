"""ID tokens of OIDC issuers (OpenID Connect Core 1.0, 3.1.3.7), judged by what we asked for. Pure.

The token is what a stranger's server says of a stranger: measured before it is read, read once, and believed in nothing
until its signature holds under a key of the issuer. The algorithm is the key's, never the token's; nothing in the
header brings a key. Only code flow is meant, so hashes of codes and access tokens are not looked at.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import jwt
import msgspec
from jwt.api_jws import PyJWS

from custody.identity.addresses import BadEmailAddress, normalised_email
from custody.identity.strict_json import NotStrict, read_object
from identity.sign_on.key_sets import Key, KeySet

MAX_TOKEN: Final = 16 * 1024
# In seconds: how far clocks may be apart, and how old a token may be that was made for this sign-in.
SKEW: Final = 120
MAX_AGE: Final = 600
_SPELLING = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z")
_LINE = re.compile(r"[^\x00-\x1f\x7f]{1,255}\Z")
_SUBJECT = re.compile(r"[\x20-\x7e]{1,255}\Z")
# They bring a key, say where one is, or change how the token is read.
_REFUSED_HEADERS: Final = frozenset({"crit", "jwk", "jku", "x5u", "x5c", "b64", "zip"})
# A logout token or an access token of the same issuer is signed by the same keys.
_TYPES: Final = frozenset({"jwt", "application/jwt"})
_DIRECTORY = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# One directory in Entra's global cloud, that of the US government or that of China; tokens of version 1.0 name another
# host, which is the same in all of them but China's.
_MICROSOFT = re.compile(
    rf"https://(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn)/{_DIRECTORY}/v2\.0\Z"
    rf"|https://sts\.(?:windows\.net|chinacloudapi\.cn)/{_DIRECTORY}/\Z"
)
# `xms_edov` is met in each of these forms; a float is not one of them.
_HOLDS: Final = (True, 1, "1", "true")
_EXACT: Final = 2**53
# An algorithm checks keys that are shorter than it wants; by default the library only warns.
_SIGNATURES = PyJWS(options={"enforce_minimum_key_length": True})

# Each refusal: its stable code, and what it means.
REFUSALS: Final[Mapping[str, str]] = {
    "id_token_too_large": "The ID token is larger than 16 KiB.",
    "id_token_malformed": "The ID token is no signed JWT of three parts, or says a thing twice.",
    "id_token_header": "The header of the ID token has a parameter that is not accepted, such as a key of its own.",
    "id_token_type": "The token is not an ID token by its type.",
    "id_token_algorithm": "The ID token's algorithm is not one of the key that it names.",
    "id_token_kid_missing": "The ID token names no key, and the issuer has several.",
    "id_token_signature": "The signature of the ID token does not hold.",
    "id_token_issuer": "The ID token is from another issuer.",
    "id_token_audience": "The ID token is for another audience.",
    "id_token_azp": "The ID token was made for another client.",
    "id_token_nonce": "The ID token belongs to another sign-in.",
    "id_token_time": "A time in the ID token is missing or is no number of seconds.",
    "id_token_expired": "The ID token has expired.",
    "id_token_early": "The ID token is from the future: the clocks are more than two minutes apart.",
    "id_token_old": "The ID token was issued more than ten minutes ago.",
    "id_token_subject": "The subject of the ID token is missing, or is not 1 to 255 printable characters.",
}


class IdTokenRefused(Exception):
    """The token proves nothing; `code` is a key of REFUSALS."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    @property
    def sentence(self) -> str:
        """Say what the code means."""
        return REFUSALS[self.code]


class KeyUnknown(Exception):
    """The token names a key that is not in the set: the issuer may have made a new one."""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The expectations of a token: its issuer, its nonce, and the moment of judging."""

    issuer: str
    client_id: str
    audience: tuple[str, ...]
    nonce: str
    now: datetime

    def __repr__(self) -> str:
        return f"Expected({self.issuer})"


class IdClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that a token proves: the subject at its issuer. The rest is as the issuer says it, in any type."""

    issuer: str
    subject: str
    said: dict[str, Any]

    def text(self, name: str) -> str | None:
        """Read what the issuer says under a name, if it is a short text in one line."""
        found = self.said.get(name)
        return found if isinstance(found, str) and _LINE.match(found) else None

    def __repr__(self) -> str:
        return f"IdClaims({self.issuer})"


def verify(token: str, expected: Expected, keys: KeySet) -> IdClaims:
    """Return what the token proves. IdTokenRefused, or KeyUnknown where another set of keys could help."""
    if len(token) > MAX_TOKEN:
        raise IdTokenRefused("id_token_too_large")
    if not _SPELLING.match(token):
        raise IdTokenRefused("id_token_malformed")
    claims = _claims(token, keys)
    if claims.get("iss") != expected.issuer:
        raise IdTokenRefused("id_token_issuer")
    _check_audience(claims, expected)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise IdTokenRefused("id_token_nonce")
    _check_times(claims, expected.now.timestamp())
    subject = claims.get("sub")
    if not isinstance(subject, str) or not _SUBJECT.match(subject):
        raise IdTokenRefused("id_token_subject")
    return IdClaims(issuer=expected.issuer, subject=subject, said=claims)


def verified_email(claims: IdClaims, issuer: str) -> str | None:
    """The address in lower case, if the issuer says that it is verified; None otherwise.

    Issuers of Microsoft never say so: there an administrator adds `xms_edov`, which says that the domain's owner is the
    directory's. No other issuer's `xms_edov` means anything.
    """
    said = claims.said
    if _MICROSOFT.match(issuer):
        verified = said.get("xms_edov")
        holds = isinstance(verified, bool | int | str) and verified in _HOLDS
    else:
        holds = said.get("email_verified") is True or said.get("email_verified") == "true"
    address = said.get("email")
    if not holds or not isinstance(address, str):
        return None
    try:
        return normalised_email(address)
    except BadEmailAddress:
        return None


def _claims(token: str, keys: KeySet) -> dict[str, Any]:
    """The claims, once the signature holds."""
    first = token.partition(".")[0]
    try:
        header = read_object(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (binascii.Error, NotStrict):
        raise IdTokenRefused("id_token_malformed") from None
    key = _key_for(header, keys)
    try:
        payload = _SIGNATURES.decode(token, key.public, algorithms=list(key.algorithms))
    except jwt.InvalidSignatureError:
        raise IdTokenRefused("id_token_signature") from None
    except (jwt.PyJWTError, ValueError):
        raise IdTokenRefused("id_token_malformed") from None
    try:
        return read_object(payload)
    except NotStrict:
        raise IdTokenRefused("id_token_malformed") from None


def _key_for(header: Mapping[str, Any], keys: KeySet) -> Key:
    if _REFUSED_HEADERS & header.keys():
        raise IdTokenRefused("id_token_header")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise IdTokenRefused("id_token_type")
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or not (kid is None or isinstance(kid, str)):
        raise IdTokenRefused("id_token_malformed")
    if not keys.keys:
        raise KeyUnknown
    if kid is None:
        if len(keys.keys) > 1:
            raise IdTokenRefused("id_token_kid_missing")
        key: Key | None = keys.keys[0]
    else:
        key = keys.find(kid, algorithm)
    if key is None:
        raise KeyUnknown
    if algorithm not in key.algorithms:
        raise IdTokenRefused("id_token_algorithm")
    return key


def _check_audience(claims: Mapping[str, Any], expected: Expected) -> None:
    said = claims.get("aud")
    named = [said] if isinstance(said, str) else said
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise IdTokenRefused("id_token_audience")
    if not set(named) & set(expected.audience):
        raise IdTokenRefused("id_token_audience")
    if "azp" in claims:
        if claims["azp"] != expected.client_id:
            raise IdTokenRefused("id_token_azp")
    elif expected.client_id not in named or set(named) - {*expected.audience, expected.client_id}:
        # Without it, a token for a stranger that also names us would do, and so would one for another client.
        raise IdTokenRefused("id_token_azp")


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    expires, issued = _moment(claims, "exp"), _moment(claims, "iat")
    starts = _moment(claims, "nbf") if "nbf" in claims else issued
    if expires <= now - SKEW:
        raise IdTokenRefused("id_token_expired")
    if max(issued, starts) > now + SKEW:
        raise IdTokenRefused("id_token_early")
    if issued < now - MAX_AGE:
        raise IdTokenRefused("id_token_old")


def _moment(claims: Mapping[str, Any], name: str) -> float:
    said = claims.get(name)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= _EXACT:
        raise IdTokenRefused("id_token_time")
    return said
