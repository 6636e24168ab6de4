"""An OpenID provider of our own that is strict with its callers and misbehaves when a test tells it to.

Unlike the ones in `identity_providers` it makes tokens that no library would. What a test may set are the attributes
of `OidcServer`; `replies` of the web server below it replaces a whole answer: `server.replies("/token", html())`.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote_plus, urlencode

import msgspec

from tests.outside import loopback
from tests.outside.certificates import Authority
from tests.outside.jose import Algorithm, SigningKey, base64url, sign_token
from tests.outside.replies import Heard, Reply, json, redirect
from tests.outside.web_server import WebServer, serving

DISCOVERY = "/.well-known/openid-configuration"
CLIENT_ID, CLIENT_SECRET = "client-1", "the client's own secret"


class Grant(msgspec.Struct, frozen=True):
    """The authorization request that a code stands for."""

    client_id: str
    redirect_uri: str
    nonce: str | None
    challenge: str


class OidcServer(WebServer):
    """Its paths are /authorize, /token, /jwks, /userinfo and discovery.

    In each `_changes` a value of None takes a field away."""

    def __init__(self, issuer: str | None = None) -> None:
        super().__init__()
        self.issuer = issuer or ""
        self.client_id = CLIENT_ID
        # None: a public client, which has to do without any authentication.
        self.client_secret: str | None = CLIENT_SECRET
        # Those of others at the same issuer, with their secrets.
        self.other_clients: dict[str, str | None] = {}
        # How a client may show its secret, as discovery says.
        self.auth_methods: tuple[str, ...] = ("client_secret_basic", "client_secret_post")
        self.keys = [SigningKey()]
        self.person: dict[str, Any] = {"sub": "ann-1", "email": "ann@people.test", "email_verified": True}
        self.claim_changes: Mapping[str, object] = {}
        self.header_changes: Mapping[str, object] = {}
        self.discovery_changes: Mapping[str, object] = {}
        self.token_changes: Mapping[str, object] = {}
        self.userinfo_changes: Mapping[str, object] = {}
        self.callback_changes: Mapping[str, str | None] = {}
        # Goes to the end of the callback's query as it is.
        self.callback_suffix = ""
        # Makes the whole ID token from the honest claims, instead of signing them.
        self.id_token: Callable[[dict[str, Any]], object] = self.sign
        # The keys that are shown, where it is not those that there are.
        self.shown_keys: list[dict[str, Any]] | None = None
        self._codes: dict[str, Grant] = {}
        # Access tokens that it gave out.
        self._access: set[str] = set()

    def begin(self) -> None:
        """Be its own issuer, unless another one was named."""
        self.issuer = self.issuer or self.url

    def rotate(self, alg: Algorithm = "RS256", *, keep: bool = True) -> SigningKey:
        """Sign with a new key from now on; the old ones stay in the set if they are to be kept."""
        self.keys = [SigningKey(alg), *(self.keys if keep else [])]
        return self.keys[0]

    def sign(self, claims: dict[str, Any]) -> str:
        """An ID token with these claims, by the newest key."""
        return sign_token(claims, self.keys[0], **self.header_changes)

    def claims(self, nonce: str | None = None, **changes: object) -> dict[str, Any]:
        """Make the claims of an ID token now."""
        now = int(time.time())
        honest = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + 600, "nonce": nonce}
        return with_changes(honest | self.person | changes, self.claim_changes)

    def browse(self, authorization_url: str, ca_file: Any = None) -> str:
        """Ask for a code as the person's browser does; give where it is sent."""
        with loopback.client(ca_file=ca_file) as browser:
            answer = browser.get(authorization_url)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])

    def discovery(self) -> dict[str, Any]:
        """Make its discovery document."""
        honest = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "token_endpoint_auth_methods_supported": list(self.auth_methods) if self.client_secret else ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return with_changes(honest, self.discovery_changes)

    def respond(self, heard: Heard) -> Reply:
        """Answer as a provider does."""
        if heard.path == "/authorize":
            return self._authorize(heard.parameters)
        if heard.path == "/token" and heard.method == "POST":
            return self._token(heard)
        if heard.path == "/jwks":
            return json({"keys": [key.jwk for key in self.keys] if self.shown_keys is None else self.shown_keys})
        if heard.path == "/userinfo":
            known = heard.headers.get("authorization", "").removeprefix("Bearer ") in self._access
            return json(with_changes(self.person, self.userinfo_changes)) if known else Reply(401)
        # An issuer may have a path.
        if heard.path.endswith(DISCOVERY):
            return json(self.discovery())
        return Reply(404)

    def _authorize(self, asked: dict[str, str]) -> Reply:
        wrong = [
            name
            for name, right in {
                "client_id": asked.get("client_id") in self._clients,
                "redirect_uri": "redirect_uri" in asked,
                "response_type": asked.get("response_type") == "code",
                "code_challenge": len(asked.get("code_challenge", "")) == 43,
                "code_challenge_method": asked.get("code_challenge_method") == "S256",
            }.items()
            if not right
        ]
        if wrong:
            return json({"error": "invalid_request", "wrong": wrong}, 400)
        code = secrets.token_urlsafe(24)
        grant = Grant(asked["client_id"], asked["redirect_uri"], asked.get("nonce"), asked["code_challenge"])
        self._codes[code] = grant
        honest = {"code": code, "state": asked.get("state"), "iss": self.issuer}
        query = urlencode(with_changes(honest, self.callback_changes)) + self.callback_suffix
        return redirect(f"{asked['redirect_uri']}{'&' if '?' in asked['redirect_uri'] else '?'}{query}")

    def _token(self, heard: Heard) -> Reply:
        form = heard.form
        client = self._client(heard)
        if client is None:
            return json({"error": "invalid_client"}, 401)
        grant = self._codes.pop(form.get("code", ""), None)
        verifier = base64url(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            grant is None
            or grant.client_id != client
            or form.get("grant_type") != "authorization_code"
            or grant.redirect_uri != form.get("redirect_uri")
            or grant.challenge != verifier
        ):
            return json({"error": "invalid_grant"}, 400)
        return json(with_changes(self.tokens(grant), self.token_changes))

    def tokens(self, grant: Grant) -> dict[str, Any]:
        """Exchange a good code for tokens."""
        token = secrets.token_urlsafe(24)
        self._access.add(token)
        id_token = self.id_token(self.claims(grant.nonce, aud=grant.client_id))
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600, "id_token": id_token}

    @property
    def _clients(self) -> dict[str, str | None]:
        return {self.client_id: self.client_secret} | self.other_clients

    def _client(self, heard: Heard) -> str | None:
        """The client that shows what it should, in one of the allowed ways and no other."""
        form, header = heard.form, heard.headers.get("authorization")
        client, secret, method = form.get("client_id", ""), form.get("client_secret"), "client_secret_post"
        if header is not None:
            name, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            if secret is not None:
                return None
            client, secret, method = unquote_plus(name), unquote_plus(password), "client_secret_basic"
        if client not in self._clients or secret != self._clients[client]:
            return None
        return client if secret is None or method in self.auth_methods else None


def with_changes(honest: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with some values replaced, and without those that are None."""
    return {name: value for name, value in {**honest, **changes}.items() if value is not None}


@contextmanager
def running_oidc_server(issuer: str | None = None, authority: Authority | None = None) -> Iterator[OidcServer]:
    """Start one in this process, honest until a test changes it."""
    with serving(OidcServer(issuer), authority) as server:
        yield server
