"""Google, Discord and X: where each is reached, and as which of their clients this deployment asks."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from custody.kit import environment
from custody.kit.environment import BadSetting

FILE: Final = "SERVICE_OAUTH_ENDPOINTS_FILE"
OAuthName = Literal["google", "discord", "twitter"]
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OAuthEndpoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A provider's addresses. One with an `issuer` gives ID tokens; the other is asked for the person's profile."""

    authorization_url: str
    token_url: str
    issuer: str | None = None
    jwks_url: str | None = None
    profile_url: str | None = None


SCOPES: Final[dict[OAuthName, str]] = {
    "google": "openid email profile",
    "discord": "openid identify email",
    "twitter": "users.read tweet.read",
}
# How the client shows its secret: X takes it by Basic alone, the others in the form.
BASIC: Final = frozenset({"twitter"})
_BUILT_IN: Final[dict[OAuthName, OAuthEndpoints]] = {
    "google": OAuthEndpoints(
        issuer="https://accounts.google.com",
        authorization_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106 - an address
        jwks_url="https://www.googleapis.com/oauth2/v3/certs",
    ),
    "discord": OAuthEndpoints(
        issuer="https://discord.com",
        authorization_url="https://discord.com/oauth2/authorize",
        token_url="https://discord.com/api/oauth2/token",  # noqa: S106 - an address
        jwks_url="https://discord.com/api/oauth2/keys",
    ),
    "twitter": OAuthEndpoints(
        authorization_url="https://x.com/i/oauth2/authorize",
        token_url="https://api.x.com/2/oauth2/token",  # noqa: S106 - an address
        profile_url="https://api.x.com/2/users/me",
    ),
}


def load(source: Mapping[str, str]) -> dict[OAuthName, OAuthEndpoints]:
    """The three providers. For development a file names other addresses: TOML, a table for each provider.

    Such a file is refused unless the service itself is reached on loopback.
    """
    path = source.get(FILE, "").strip()
    if not path:
        return _BUILT_IN
    if urlsplit(environment.public_url(source)).hostname not in _LOOPBACK:
        raise BadSetting(FILE, "is for development: it is refused where SERVICE_PUBLIC_URL is not on loopback")
    try:
        given = msgspec.convert(tomllib.loads(Path(path).expanduser().read_text()), dict[OAuthName, OAuthEndpoints])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise BadSetting(FILE, str(problem)) from None
    return _BUILT_IN | given


def client_ids(source: Mapping[str, str]) -> dict[OAuthName, str]:
    """The deployment's client id at each provider for which it has one."""
    return _by_provider(source, "CLIENT_ID")


def client_secrets(source: Mapping[str, str]) -> dict[OAuthName, str]:
    """The secrets beside them; only the api has these."""
    return _by_provider(source, "CLIENT_SECRET")


def _by_provider(source: Mapping[str, str], what: str) -> dict[OAuthName, str]:
    found = {name: source.get(f"{name.upper()}_{what}", "").strip() for name in _BUILT_IN}
    return {name: value for name, value in found.items() if value}
