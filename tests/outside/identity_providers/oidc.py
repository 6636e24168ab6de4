"""An OpenID provider that others wrote: node's `oidc-provider`, certified by the OpenID Foundation, as a process."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import httpx
import msgspec

from tests.outside import loopback, npm
from tests.outside.certificates import Authority
from tests.outside.identity_providers.forms import form_in
from tests.outside.processes import running

ClientAuth = Literal["client_secret_basic", "client_secret_post", "none"]
HERE = Path(__file__).parent
_MOST_STEPS = 12


class OidcClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A service that the provider knows, in the words of dynamic registration."""

    client_id: str
    redirect_uris: tuple[str, ...]
    client_secret: str | None = None
    token_endpoint_auth_method: ClientAuth = "client_secret_basic"
    id_token_signed_response_alg: Literal["RS256", "ES256"] = "RS256"


class OidcProvider:
    """An OIDC provider, and the browser of the person who signs in."""

    def __init__(self, issuer: str, ca_file: Path | None) -> None:
        self.issuer = issuer
        self._ca_file = ca_file

    @property
    def discovery(self) -> dict[str, Any]:
        """Its document, with the addresses that a tenant's configuration wants."""
        with self._client() as http:
            return http.get(f"{self.issuer}/.well-known/openid-configuration").json()  # type: ignore[no-any-return]

    def says(self, sub: str, **claims: object) -> None:
        """From now on everybody who signs in is this person."""
        self._put("/settings/user", {"sub": sub, **claims})

    def rotate_keys(self, *, forget: bool = False) -> None:
        """Sign with new keys from now on; the old ones stay published unless they are to be forgotten."""
        self._put("/settings/keys", {"forget": forget})

    def answer(self, authorization_url: str) -> str:
        """Walk from the service's redirect through the pages as a browser does; give where it is sent in the end."""
        own = urlsplit(authorization_url).netloc
        with self._client() as browser:
            request = browser.build_request("GET", authorization_url)
            for _ in range(_MOST_STEPS):
                page = browser.send(request)
                if page.is_redirect:
                    there = urljoin(str(request.url), page.headers["location"])
                    if urlsplit(there).netloc != own:
                        return there
                    request = browser.build_request("GET", there)
                else:
                    assert page.status_code == 200, page.text
                    form = form_in(page.text)
                    request = browser.build_request(
                        form.method, urljoin(str(request.url), form.action), data=form.fields
                    )
        raise AssertionError(f"still at {request.url}")

    def _put(self, path: str, content: object) -> None:
        with self._client() as http:
            http.put(self.issuer + path, content=msgspec.json.encode(content)).raise_for_status()

    def _client(self) -> httpx.Client:
        return loopback.client(timeout=10, ca_file=self._ca_file)


@contextmanager
def running_oidc_provider(
    clients: Sequence[OidcClient],
    user: dict[str, object] | None = None,
    host: Literal["127.0.0.1", "localhost"] = "127.0.0.1",
    authority: Authority | None = None,
) -> Iterator[OidcProvider]:
    """Start one with new keys; PKCE is demanded of every client. With an authority it is https on `localhost`."""
    npm.install(HERE)
    person = user or {"sub": "ann-1", "email": "ann@people.test", "email_verified": True, "name": "Ann"}
    tls = authority.leaf("oidc-provider", "localhost") if authority else None
    host = "localhost" if tls else host
    given = {"clients": clients, "user": person, "host": host, "tls": str(tls) if tls else None}
    node = shutil.which("node") or "node"
    with running([node, HERE / "oidc.mjs", msgspec.json.encode(given).decode()]) as address:
        issuer = f"{'https' if tls else 'http'}://{host}:{address.rpartition(':')[2]}"
        yield OidcProvider(issuer, authority.ca_file if authority else None)
