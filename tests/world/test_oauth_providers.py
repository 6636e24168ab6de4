"""Google, Discord and X: each signs somebody in, and the file of their addresses says where they are."""

import base64
import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest

from tests.outside import loopback
from tests.outside.identity_providers.forms import query_of
from tests.outside.oauth_providers import OAuthProviders, running_oauth_providers
from tests.outside.oidc_server import OidcServer
from tests.outside.replies import json

CALLBACK, VERIFIER = "https://app.test/callback", "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def shared_providers() -> Iterator[OAuthProviders]:
    with running_oauth_providers() as providers:
        yield providers


@pytest.fixture
def providers(shared_providers: OAuthProviders) -> Iterator[OAuthProviders]:
    yield shared_providers
    shared_providers.twitter.well()


def tokens(server: OidcServer, addresses: dict[str, str]) -> dict[str, Any]:
    asked = {
        "response_type": "code",
        "client_id": server.client_id,
        "redirect_uri": CALLBACK,
        "state": "state-1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    shown = query_of(server.browse(f"{addresses['authorization_url']}?{urlencode(asked)}"))["code"]
    form = {"grant_type": "authorization_code", "code": shown, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    with loopback.client() as http:
        answer = http.post(addresses["token_url"], data=form, auth=(server.client_id, server.client_secret))
    assert answer.status_code == 200, answer.text
    return answer.json()


def addresses(providers: OAuthProviders, folder: Path) -> dict[str, dict[str, str]]:
    return tomllib.loads(providers.write_endpoints(folder / "endpoints.toml").read_text())


@pytest.mark.parametrize("name", ["google", "discord"])
def test_two_of_them_give_id_tokens(providers: OAuthProviders, tmp_path: Path, name: str) -> None:
    server, found = providers.all[name], addresses(providers, tmp_path)[name]

    token = tokens(server, found)["id_token"]

    keys = jwt.PyJWKSet.from_dict(loopback.get(found["jwks_url"]).json())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    assert jwt.decode(token, key, audience=server.client_id, issuer=found["issuer"])["sub"] == "ann-1"
    assert set(found) == {"issuer", "authorization_url", "token_url", "jwks_url"}


def profile(url: str, token: str) -> Any:
    with loopback.client() as http:
        return http.get(url, headers={"authorization": f"Bearer {token}"})


def test_x_gives_an_access_token_and_says_who_that_is(providers: OAuthProviders, tmp_path: Path) -> None:
    found = addresses(providers, tmp_path)["twitter"]

    given = tokens(providers.twitter, found)

    assert "id_token" not in given
    assert set(found) == {"authorization_url", "token_url", "profile_url"}
    assert profile(found["profile_url"], given["access_token"]).json()["data"]["id"] == "2244994945"
    assert profile(found["profile_url"], "a guess").status_code == 401


@pytest.mark.parametrize(
    "said", [{"data": {"id": 7}}, {"data": {"id": {"id": "7"}}}, {"errors": [{"title": "Not Found"}]}]
)
def test_x_says_something_else(providers: OAuthProviders, said: dict[str, Any]) -> None:
    providers.twitter.replies("/2/users/me", json(said))

    assert profile(f"{providers.twitter.url}/2/users/me", "any").json() == said


def test_the_service_is_told_a_client_of_each(providers: OAuthProviders) -> None:
    assert providers.environment["GOOGLE_CLIENT_ID"] == "google-client"
    assert providers.environment["TWITTER_CLIENT_SECRET"] == "the secret of twitter"
    assert len(providers.environment) == 6
