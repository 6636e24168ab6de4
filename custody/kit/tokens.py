"""Random credentials of 256 bits, and how they are compared.

They need no slow hash: nobody can guess 256 random bits, so SHA-256 is enough to store them.
"""

import hashlib
import hmac
import secrets

SHOWN_PREFIX = 12


def new_api_key(kind: str) -> str:
    """A fresh credential such as `ck_live_...`; shown once, stored only as its hash."""
    return f"{kind}_{secrets.token_urlsafe(32)}"  # noqa: TID251 - this is the place


def new_nonce() -> str:
    """A nonce of letters and digits alone, as EIP-4361 wants it; 128 bits."""
    return secrets.token_hex(16)  # noqa: TID251 - this is the place


def new_random() -> str:
    """256 random bits in 43 characters, for what lives a few minutes."""
    return secrets.token_urlsafe(32)  # noqa: TID251 - this is the place


def new_digits() -> str:
    """Six random digits; only as good as the count of guesses beside it."""
    return f"{secrets.randbelow(1_000_000):06d}"


def digest(token: str) -> bytes:
    """The SHA-256 under which a credential is stored and looked up."""
    return hashlib.sha256(token.encode()).digest()


def equal(left: bytes, right: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left, right)


def prefix_of(token: str) -> str:
    """The first characters of a credential, enough to recognise it in a list and useless to an attacker."""
    return token[:SHOWN_PREFIX]
