"""Google, Discord and X as far as signing in with them goes, each as a server in this process.

Google and Discord give ID tokens, so everything that can be wrong with an `OidcServer` can be wrong with them. X gives
an access token alone, and says who that is at /2/users/me.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.outside.certificates import Authority
from tests.outside.oidc_server import Grant, OidcServer
from tests.outside.replies import Heard, Reply, json
from tests.outside.web_server import serving

GOOGLE_ISSUER, DISCORD_ISSUER = "https://accounts.google.com", "https://discord.com"
TWITTER_ISSUER = "https://x.com"


class TwitterServer(OidcServer):
    """X: `profile` is what it says about the person; `replies("/2/users/me", ...)` says something else."""

    def __init__(self) -> None:
        super().__init__(TWITTER_ISSUER)
        self.auth_methods = ("client_secret_basic",)
        self.callback_changes = {"iss": None}
        self.profile: dict[str, Any] = {"data": {"id": "2244994945", "name": "Ann", "username": "ann"}}
        self._tokens: set[str] = set()

    def tokens(self, grant: Grant) -> dict[str, Any]:
        """An access token and no ID token."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        return {"access_token": token, "token_type": "bearer", "expires_in": 7200, "scope": "users.read tweet.read"}

    def respond(self, heard: Heard) -> Reply:
        """Answer as X does."""
        if heard.path in ("/jwks", "/.well-known/openid-configuration"):
            return Reply(404)
        if heard.path != "/2/users/me":
            return super().respond(heard)
        shown = heard.headers.get("authorization", "").removeprefix("Bearer ")
        return json(self.profile) if shown in self._tokens else json({"title": "Unauthorized", "status": 401}, 401)


class OAuthProviders:
    """The three, each with a client of its own."""

    def __init__(self, google: OidcServer, discord: OidcServer, twitter: TwitterServer) -> None:
        self.google, self.discord, self.twitter = google, discord, twitter
        self.all: dict[str, OidcServer] = {"google": google, "discord": discord, "twitter": twitter}
        for name, server in self.all.items():
            server.client_id, server.client_secret = f"{name}-client", f"the secret of {name}"

    @property
    def environment(self) -> dict[str, str]:
        """The two variables of each."""
        return {
            f"{name.upper()}_CLIENT_{what}": value
            for name, server in self.all.items()
            for what, value in (("ID", server.client_id), ("SECRET", server.client_secret or ""))
        }

    def write_endpoints(self, file: Path) -> Path:
        """Write the file that SERVICE_OAUTH_ENDPOINTS_FILE names, and give it back."""
        lines = []
        for name, server in self.all.items():
            fields = {"authorization_url": f"{server.url}/authorize", "token_url": f"{server.url}/token"}
            if isinstance(server, TwitterServer):
                fields |= {"profile_url": f"{server.url}/2/users/me"}
            else:
                fields |= {"issuer": server.issuer, "jwks_url": f"{server.url}/jwks"}
            lines += [f"[{name}]", *(f'{key} = "{value}"' for key, value in fields.items()), ""]
        file.write_text("\n".join(lines))
        return file


@contextmanager
def running_oauth_providers(
    google_issuer: str = GOOGLE_ISSUER, discord_issuer: str = DISCORD_ISSUER, authority: Authority | None = None
) -> Iterator[OAuthProviders]:
    """Start all three, honest until a test changes them."""
    with ExitStack() as stack:
        yield OAuthProviders(
            stack.enter_context(serving(OidcServer(google_issuer), authority)),
            stack.enter_context(serving(OidcServer(discord_issuer), authority)),
            stack.enter_context(serving(TwitterServer(), authority)),
        )
