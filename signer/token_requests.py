"""The request that a provider's token endpoint answers with an access token, made of a route's secret.

The signer has no way out: the proxy sends it, as it sends everything. A private key never leaves; what is signed here
is good for an hour at most.
"""

from base64 import b64encode
from datetime import datetime
from urllib.parse import quote_plus, urlencode

import jwt

from custody.credentials.token_exchange import (
    ClientSecret,
    GithubApp,
    Held,
    RefreshToken,
    ServiceAccount,
    TokenExchange,
    rsa_key,
)
from custody.protocol.signer.secrets import TokenRequest

# GitHub takes no longer one, and clocks differ by up to a minute.
_GITHUB_SECONDS, _GOOGLE_SECONDS, _SLACK_SECONDS = 540, 3_600, 60
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def build(exchange: TokenExchange, held: Held, now: datetime) -> TokenRequest:
    """Build the request; what must not come back of it is among its `secrets`."""
    seconds = int(now.timestamp())
    asked = {"scope": exchange.scope, "audience": exchange.audience}
    match held:
        case ClientSecret():
            return _of_client(
                exchange, held.client_id, held.client_secret, {"grant_type": "client_credentials", **asked}
            )
        case RefreshToken():
            form = {"grant_type": "refresh_token", "refresh_token": held.refresh_token, **asked}
            return _of_client(exchange, held.client_id, held.client_secret, form)
        case ServiceAccount():
            claims = {"iss": held.client_email, "aud": exchange.url, "iat": seconds, "exp": seconds + _GOOGLE_SECONDS}
            said = claims | ({"scope": exchange.scope} if exchange.scope else {"target_audience": exchange.audience})
            head = {"kid": held.private_key_id} if held.private_key_id else None
            signed = jwt.encode(said, rsa_key(held.private_key), "RS256", headers=head)
            return TokenRequest(exchange.url, _FORM, _form({"grant_type": _JWT_GRANT, "assertion": signed}))
        case GithubApp():
            claims = {"iss": held.app_id, "iat": seconds - _SLACK_SECONDS, "exp": seconds + _GITHUB_SECONDS}
            signed = jwt.encode(claims, rsa_key(held.private_key), "RS256")
            url = f"{exchange.url.rstrip('/')}/app/installations/{held.installation_id}/access_tokens"
            head = {"Authorization": f"Bearer {signed}", "Accept": "application/vnd.github+json"}
            return TokenRequest(url, head | {"User-Agent": "custody", "X-GitHub-Api-Version": "2022-11-28"}, b"")


def _of_client(exchange: TokenExchange, client: str, secret: str | None, form: dict[str, str]) -> TokenRequest:
    if secret is not None and exchange.client_auth == "basic":
        # RFC 6749, 2.3.1: both are encoded like fields of a form first.
        both = b64encode(f"{quote_plus(client)}:{quote_plus(secret)}".encode()).decode()
        return TokenRequest(exchange.url, _FORM | {"Authorization": f"Basic {both}"}, _form(form))
    return TokenRequest(exchange.url, _FORM, _form(form | {"client_id": client, "client_secret": secret or ""}))


def _form(fields: dict[str, str]) -> bytes:
    return urlencode({name: value for name, value in fields.items() if value}).encode()
