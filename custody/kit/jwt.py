"""Verifying our tokens: EdDSA only, with a key from our own record, never what the token asks for.

A key signs for one issuer alone, the service's public address, and for one use: the signer's for agents' tokens,
identity's for people's. Anyone who verifies learns them from the worker whose keys they are.
"""

import base64
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.errors import Unauthenticated
from custody.kit.shapes import Role, Uuid

MAX_TOKEN_CHARACTERS = 4096
_CACHED = 20_000
_SPELLING = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class BadToken(Unauthenticated):
    """The token is malformed, expired or not of this service. Ask the tenant for a new one; a person signs in again."""


class UnknownKey(BadToken):
    """The token was signed with a key this process does not know."""


class AgentClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Claims of an agent token. `inc` is the agent's incarnation, so a re-created agent never revives old tokens."""

    iss: str
    sub: str
    tid: str
    scope: Literal["agent"]
    inc: str
    epoch: int
    iat: int
    exp: int
    jti: str


class SessionClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The claims of a person's access token: signed in to tenant `tid` as `role`, a second factor shown at `mfa_at`.

    `page` is the app client at whose page it began, `bound` that single sign-on began it: such a session stays in its
    tenant. With an `approval`, and the `digest` of its order, it is good for approving that, and for nothing else.

    Role, membership and session are looked up again wherever the token is used; they may be gone since.
    """

    iss: str
    sub: Uuid
    sid: Uuid
    tid: str
    role: Role
    scope: Literal["session"]
    amr: list[str]
    mfa_at: int | None
    iat: int
    exp: int
    jti: str
    page: str | None = None
    bound: bool = False
    approval: str | None = None
    digest: str | None = None


Claims = AgentClaims | SessionClaims


class TokenKeys:
    """The public keys by id, their issuer, and a cache of tokens already verified (a verification costs 0.1 ms)."""

    def __init__(
        self, agents: Mapping[str, bytes], issuer: str = "", sessions: Mapping[str, bytes] | None = None
    ) -> None:
        keys: tuple[tuple[type[Claims], Mapping[str, bytes]], ...] = (
            (SessionClaims, sessions or {}),
            # Last: whatever identity calls its keys, it takes none away from agents.
            (AgentClaims, agents),
        )
        self._keys = {
            kid: (Ed25519PublicKey.from_public_bytes(raw), use) for use, raws in keys for kid, raw in raws.items()
        }
        self._issuer = issuer
        self._verified: Cache[bytes, Claims] = Cache(_CACHED)

    @classmethod
    def from_jwks(cls, agents: list[dict[str, str]], sessions: Sequence[dict[str, str]] = ()) -> "TokenKeys":
        """From the JWKs of the signer and of identity; keys of another use, such as receipts, verify no token."""
        issuer = next((key["issuer"] for key in (*agents, *sessions) if key["use"] == "sig"), "")
        return cls(_public(agents), issuer, _public(sessions))

    def knows_key_of(self, token: str) -> bool:
        """Say whether the key that a token names is one of these; if unreadable, yes: no other key helps."""
        try:
            return str(jwt.get_unverified_header(token).get("kid")) in self._keys
        except (jwt.PyJWTError, ValueError, RecursionError):
            return True

    def verify(self, token: str) -> AgentClaims:
        """The claims of a valid, unexpired agent token. Whether it was revoked is the database's word, not ours."""
        claims = self.read(token)
        if not isinstance(claims, AgentClaims):
            raise BadToken
        return claims

    def read(self, token: str) -> Claims:
        """The same of either kind of token; what it may be used for is for the asker to look at."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise BadToken
        name = hashlib.sha256(token.encode()).digest()
        claims = self._verified.get(name)
        if claims is None:
            claims = self._verify(token)
            self._verified.put(name, claims)
        if claims.exp <= time.time():  # noqa: TID251 - expiry is compared with this process' clock
            raise BadToken
        return claims

    def _verify(self, token: str) -> Claims:
        if not _is_canonical(token):
            raise BadToken
        try:
            header = jwt.get_unverified_header(token)
            key, use = self._keys.get(str(header.get("kid")), (None, None))
            if key is None or use is None:
                raise UnknownKey
            claims = jwt.decode(
                token,
                key,
                algorithms=["EdDSA"],
                issuer=self._issuer,
                options={"require": ["exp", "iat", "iss"], "verify_aud": False},
            )
            # The scope is part of the shape: a key of one use signs nothing of the other.
            return msgspec.convert(claims, use)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError):
            raise BadToken from None


def expiry_of(token: str) -> datetime:
    """Read when a token ends; only for one that was verified before."""
    return clock.of_unix(int(jwt.decode(token, options={"verify_signature": False})["exp"]))


def _public(jwks: Sequence[dict[str, str]]) -> dict[str, bytes]:
    return {key["kid"]: base64.urlsafe_b64decode(key["x"] + "==") for key in jwks if key["use"] == "sig"}


def _is_canonical(token: str) -> bool:
    """Say whether it is the one spelling of its token: the library takes padding too, and bits that no byte holds."""
    if not _SPELLING.fullmatch(token):
        return False
    # What is before the last dot is signed as it is spelled.
    signature = token.rpartition(".")[2]
    try:
        again = base64.urlsafe_b64encode(base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)))
    except ValueError:
        return False
    return again.rstrip(b"=").decode() == signature
