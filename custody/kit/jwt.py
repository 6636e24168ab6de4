"""Verifying our tokens: EdDSA only, with a key from our own record, never what the token asks for. Decisions 5.

A key signs for one issuer alone, the signer's public address; whoever verifies learns both from the signer.
"""

import base64
import hashlib
import time
from collections import OrderedDict
from typing import Literal

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from custody.kit.errors import Unauthenticated
from custody.kit.shapes import Role, Uuid

MAX_TOKEN_CHARACTERS = 4096
_CACHED = 20_000


class BadToken(Unauthenticated):
    """The token is not valid: malformed, expired, or not signed by this service. Ask the tenant for a new one."""


class UnknownKey(BadToken):
    """The token was signed with a key this process does not know."""


class AgentClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent token says. `inc` is the agent's incarnation, so a re-created agent never revives old tokens."""

    iss: str
    sub: str
    tid: str
    scope: Literal["agent"]
    inc: str
    epoch: int
    iat: int
    exp: int
    jti: str


class SessionClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person's access token says: signed in to tenant `tid` as `role`, a second factor shown at `mfa_at`.

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


Claims = AgentClaims | SessionClaims


class TokenKeys:
    """The public keys by id, their issuer, and a cache of tokens already verified (a verification costs 0.1 ms)."""

    def __init__(self, public: dict[str, bytes], issuer: str = "") -> None:
        self._keys = {kid: Ed25519PublicKey.from_public_bytes(raw) for kid, raw in public.items()}
        self._issuer = issuer
        self._verified: OrderedDict[bytes, Claims] = OrderedDict()

    @classmethod
    def from_jwks(cls, jwks: list[dict[str, str]]) -> "TokenKeys":
        """From the JWK set the signer publishes; keys of another use, such as receipts, verify no token."""
        jwks = [key for key in jwks if key["use"] == "sig"]
        public = {key["kid"]: base64.urlsafe_b64decode(key["x"] + "==") for key in jwks}
        return cls(public, next((key["issuer"] for key in jwks), ""))

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
            self._verified[name] = claims
            if len(self._verified) > _CACHED:
                self._verified.popitem(last=False)
        if claims.exp <= time.time():  # noqa: TID251 - expiry is compared with this process' clock
            raise BadToken
        return claims

    def _verify(self, token: str) -> Claims:
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.get(str(header.get("kid")))
            if key is None:
                raise UnknownKey
            claims = jwt.decode(
                token, key, algorithms=["EdDSA"], issuer=self._issuer,
                options={"require": ["exp", "iat", "iss"], "verify_aud": False},
            )  # fmt: skip
            if claims.get("scope") == "session":
                return msgspec.convert(claims, SessionClaims)
            return msgspec.convert(claims, AgentClaims)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError):
            raise BadToken from None
