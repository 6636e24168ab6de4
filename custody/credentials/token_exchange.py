"""Credentials that expire: what a secret must hold so that an access token can be asked for with it.

Pure: `signer/token_requests.py` makes the request, the proxy sends it (docs/decisions/0123).
"""

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Meta

from custody.credentials.spelling import Misspelled, read_host
from custody.kit.described import described
from custody.kit.errors import Invalid

Grant = Literal["clientCredentials", "refreshToken", "googleServiceAccount", "githubApp"]
DEFAULT_URLS: dict[Grant, str] = {
    "googleServiceAccount": "https://oauth2.googleapis.com/token",
    "githubApp": "https://api.github.com",
}
SMALLEST_RSA_BITS = 2048
# Characters of a PEM: 4,096 bits. A longer key takes seconds to read.
MAX_PEM = 4096
# Odd ones that a machine's word holds.
_EXPONENTS = range(3, 2**32, 2)
_Short = Annotated[str, Meta(min_length=1, max_length=4096)]
_Url = Annotated[str, Meta(max_length=1024, pattern=r"^[\x21-\x7e]*\Z")]
_Words = Annotated[str, Meta(max_length=1024, pattern=r"^[\x20-\x7e]*\Z")]


class TokenExchange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The way from a route's secret to the access token that is injected in its place."""

    grant: Annotated[Grant, described("The grant: what the secret holds, and the way to a token.")]
    token_url: Annotated[_Url, described("The provider's token endpoint; of GitHub, the API's address.")] = ""
    scope: Annotated[_Words, described("The scopes that are asked for, with blanks between them.")] = ""
    audience: Annotated[_Words, described("The audience, where the provider wants one.")] = ""
    client_auth: Annotated[
        Literal["basic", "post"], described("Place of the client's secret: in Basic, or in the form.")
    ] = "basic"

    @property
    def url(self) -> str:
        """The address that is asked."""
        return self.token_url or DEFAULT_URLS.get(self.grant, "")


class ClientSecret(msgspec.Struct, frozen=True, rename="camel"):
    """OAuth 2.0 client credentials (RFC 6749, 4.4)."""

    client_id: _Short
    client_secret: _Short

    def __repr__(self) -> str:
        return "ClientSecret()"


class RefreshToken(msgspec.Struct, frozen=True, rename="camel"):
    """OAuth 2.0 refresh token (RFC 6749, 6); a public client has no secret."""

    client_id: _Short
    refresh_token: _Short
    client_secret: _Short | None = None

    def __repr__(self) -> str:
        return "RefreshToken()"


class ServiceAccount(msgspec.Struct, frozen=True):
    """The key file of a Google service account, of which this is used."""

    client_email: _Short
    private_key: Annotated[str, Meta(min_length=1, max_length=MAX_PEM)]
    private_key_id: _Short | None = None

    def __repr__(self) -> str:
        return "ServiceAccount()"


class GithubApp(msgspec.Struct, frozen=True, rename="camel"):
    """A GitHub App and one of its installations."""

    app_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}\Z")]
    installation_id: Annotated[str, Meta(pattern=r"^[0-9]{1,20}\Z")]
    private_key: Annotated[str, Meta(min_length=1, max_length=MAX_PEM)]

    def __repr__(self) -> str:
        return "GithubApp()"


type Held = ClientSecret | RefreshToken | ServiceAccount | GithubApp
_SHAPES: dict[Grant, type[Held]] = {
    "clientCredentials": ClientSecret,
    "refreshToken": RefreshToken,
    "googleServiceAccount": ServiceAccount,
    "githubApp": GithubApp,
}


class ValueNotForExchange(Invalid):
    """The secret's value is not what this grant needs."""


def problem_of(exchange: TokenExchange) -> str | None:
    """Say what is wrong with an exchange, or None."""
    if not exchange.url:
        return "tokenUrl: this grant has no address of its own, so name the provider's token endpoint."
    try:
        parts = urlsplit(exchange.url)
    except ValueError:
        return "tokenUrl: it is not an address."
    if parts.scheme != "https" or "@" in parts.netloc or parts.fragment or "\\" in exchange.url:
        return "tokenUrl: it must begin with https://, without user, password and fragment."
    try:
        read_host(parts.netloc)
    except Misspelled as problem:
        return f"tokenUrl: {problem.message}"
    return None


def read_value(exchange: TokenExchange, value: bytes) -> Held:
    """Read what a secret holds for a grant, or ValueNotForExchange with a sentence that shows nothing of the value."""
    shape = _SHAPES[exchange.grant]
    try:
        held = msgspec.json.decode(value, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        wanted = ", ".join(field.encode_name for field in msgspec.structs.fields(shape) if field.required)
        raise ValueNotForExchange(f"For {exchange.grant} the value is a JSON object with {wanted}.") from None
    if isinstance(held, ServiceAccount | GithubApp):
        rsa_key(held.private_key)
    return held


def rsa_key(pem: str) -> RSAPrivateKey:
    """The private key of a PEM, or ValueNotForExchange.

    Whether its primes are primes is not looked at: that takes a tenth of a second, in which nothing else runs, and a
    key that is none signs nothing but what its own tenant's provider refuses.
    """
    try:
        key = load_pem_private_key(pem.encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey) or key.key_size < SMALLEST_RSA_BITS or not _adds_up(key):
        raise ValueNotForExchange("The private key must be an RSA key of 2048 bits or more in PEM, without a password.")
    return key


def _adds_up(key: RSAPrivateKey) -> bool:
    numbers = key.private_numbers()
    modulus, exponent = numbers.public_numbers.n, numbers.public_numbers.e
    odd = modulus % 2 == numbers.p % 2 == numbers.q % 2 == 1
    return odd and numbers.p * numbers.q == modulus and exponent in _EXPONENTS and 1 < numbers.d < modulus
