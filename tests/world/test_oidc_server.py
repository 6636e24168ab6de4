"""Our OpenID provider: honest by itself, strict with its callers, and as wrong as a test wants it."""

import base64
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt
import msgspec
import pytest

from tests.outside import loopback
from tests.outside.certificates import Authority
from tests.outside.identity_providers.forms import query_of
from tests.outside.jose import SigningKey, hmac_signed, sign_token, token_in_the_clear, token_without_signature
from tests.outside.oidc_server import CLIENT_ID, CLIENT_SECRET, DISCOVERY, OidcServer, running_oidc_server
from tests.outside.replies import drip, endless, html, redirect, silence, zip_bomb

CALLBACK, VERIFIER = "https://app.test/callback?a=b", "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
ASKED = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": CALLBACK,
    "scope": "openid email",
    "state": "state-1",
    "nonce": "nonce-1",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}
BASIC = (CLIENT_ID, CLIENT_SECRET)


@pytest.fixture
def server() -> Iterator[OidcServer]:
    with running_oidc_server() as started:
        yield started


def code(server: OidcServer, **changes: str) -> str:
    return query_of(server.browse(f"{server.url}/authorize?{urlencode(ASKED | changes)}"))["code"]


def exchange(server: OidcServer, shown: str, auth: Any = BASIC, **changes: str) -> httpx.Response:
    form = {"grant_type": "authorization_code", "code": shown, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    with loopback.client() as http:
        return http.post(f"{server.url}/token", data=form | changes, auth=auth)


def read(server: OidcServer, token: str) -> dict[str, Any]:
    keys = jwt.PyJWKSet.from_dict(loopback.get(f"{server.url}/jwks").json())
    header = jwt.get_unverified_header(token)
    return jwt.decode(token, keys[header["kid"]], audience=CLIENT_ID, issuer=server.issuer)


def test_a_code_becomes_a_token_that_the_published_keys_verify(server: OidcServer) -> None:
    there = server.browse(f"{server.url}/authorize?{urlencode(ASKED)}")
    found = query_of(there)
    tokens = exchange(server, found["code"]).json()

    assert there.startswith(CALLBACK + "&code=")
    assert (found["state"], found["iss"]) == ("state-1", server.url)
    assert tokens["token_type"] == "Bearer"
    claims = read(server, tokens["id_token"])
    assert (claims["sub"], claims["nonce"], claims["email_verified"]) == ("ann-1", "nonce-1", True)
    assert loopback.get(f"{server.url}{DISCOVERY}").json() == server.discovery()


def test_a_code_is_good_once(server: OidcServer) -> None:
    shown = code(server)

    assert [exchange(server, shown).status_code for _ in range(2)] == [200, 400]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": "https://app.test/other"}, "invalid_grant"),
        ({"grant_type": "password"}, "invalid_grant"),
        ({"auth": (CLIENT_ID, "a guess")}, "invalid_client"),
        ({"auth": ("another", CLIENT_SECRET)}, "invalid_client"),
        ({"auth": None}, "invalid_client"),
        ({"client_secret": CLIENT_SECRET}, "invalid_client"),
    ],
)
def test_a_wrong_exchange_is_refused(server: OidcServer, changes: dict[str, Any], error: str) -> None:
    assert exchange(server, code(server), **changes).json() == {"error": error}


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "response_type", "code_challenge_method"])
def test_a_wrong_authorization_request_is_refused(server: OidcServer, name: str) -> None:
    wrong = {key: value for key, value in ASKED.items() if key != name}

    answer = loopback.get(f"{server.url}/authorize?{urlencode(wrong)}")

    assert (answer.status_code, answer.json()["wrong"]) == (400, [name])


def test_a_client_shows_its_secret_in_the_ways_that_discovery_names(server: OidcServer) -> None:
    posted: dict[str, Any] = {"auth": None, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    assert exchange(server, code(server), **posted).status_code == 200

    server.auth_methods = ("client_secret_basic",)

    assert exchange(server, code(server), **posted).status_code == 401
    assert server.discovery()["token_endpoint_auth_methods_supported"] == ["client_secret_basic"]


def test_a_public_client_shows_none(server: OidcServer) -> None:
    server.client_secret = None

    assert exchange(server, code(server), auth=None, client_id=CLIENT_ID).status_code == 200
    assert exchange(server, code(server)).status_code == 401


def test_a_code_is_its_clients_own(server: OidcServer) -> None:
    server.other_clients = {"client-2": "its secret"}
    token = exchange(server, code(server, client_id="client-2"), auth=("client-2", "its secret")).json()["id_token"]

    assert jwt.decode(token, options={"verify_signature": False})["aud"] == "client-2"
    assert exchange(server, code(server, client_id="client-2")).json() == {"error": "invalid_grant"}


def test_an_issuer_may_have_a_path() -> None:
    with running_oidc_server("https://issuer.test/t/v2.0") as server:
        found = loopback.get(f"{server.url}/t/v2.0{DISCOVERY}").json()

    assert found["issuer"] == "https://issuer.test/t/v2.0"


def test_claims_header_and_callback_are_changed(server: OidcServer) -> None:
    server.claim_changes = {"exp": msgspec.Raw(b"1e400"), "aud": ["a", "b"], "nonce": None}
    server.header_changes = {"kid": None, "jku": "https://evil.test"}
    server.callback_changes, server.callback_suffix = {"iss": None}, "&iss=a&iss=b"

    there = server.browse(f"{server.url}/authorize?{urlencode(ASKED)}")
    shown = there.split("code=")[1].split("&")[0]
    token = exchange(server, shown).json()["id_token"]

    assert there.endswith("&state=state-1&iss=a&iss=b")
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT", "jku": "https://evil.test"}
    payload = base64.urlsafe_b64decode(token.split(".")[1] + "==")
    assert b'"exp":1e400' in payload
    assert b'"aud":["a","b"]' in payload
    assert b"nonce" not in payload


def test_the_person_says_no(server: OidcServer) -> None:
    server.callback_changes = {"code": None, "error": "access_denied", "error_description": "<b>no</b>"}

    found = query_of(server.browse(f"{server.url}/authorize?{urlencode(ASKED)}"))

    assert (found["error"], found["error_description"], found["state"]) == ("access_denied", "<b>no</b>", "state-1")
    assert "code" not in found


def test_keys_are_rotated_and_shown_as_wanted(server: OidcServer) -> None:
    old = server.keys[0]
    new = server.rotate("ES256")
    claims = read(server, exchange(server, code(server)).json()["id_token"])
    server.shown_keys = [old.private_jwk]

    assert claims["sub"] == "ann-1"
    assert server.keys == [new, old]
    assert "d" in loopback.get(f"{server.url}/jwks").json()["keys"][0]
    assert [key.kid for key in (server.rotate(keep=False), *server.keys)] == [server.keys[0].kid] * 2


def test_tokens_that_no_library_makes(server: OidcServer) -> None:
    key = server.keys[0]
    claims = server.claims()
    hostile = [
        token_without_signature(claims),
        token_without_signature(claims, "nOnE"),
        hmac_signed(claims, key.public_pem, kid=key.kid),
        sign_token(claims, key, crit=["exp"]),
        token_in_the_clear(b"{}", key),
        sign_token(b'{"sub":"a","sub":"b"}', key),
        sign_token(claims, key) + ".four.five",
        sign_token(claims, SigningKey(bits=1024), kid=key.kid),
    ]

    for token in hostile:
        server.id_token = lambda _, made=token: made
        assert exchange(server, code(server)).json()["id_token"] == token
        with pytest.raises((jwt.PyJWTError, KeyError)):
            read(server, token)


def test_answers_are_replaced_and_what_was_asked_is_kept(server: OidcServer) -> None:
    other = f"{server.url}/elsewhere"
    server.replies("/token", redirect(other, 307))
    server.replies("/jwks", html())

    answer = exchange(server, "a code")

    assert (answer.status_code, answer.headers["location"]) == (307, other)
    assert loopback.get(f"{server.url}/jwks").headers["content-type"] == "text/html"
    heard = server.at("/token")[0]
    assert heard.form["code"] == "a code"
    assert heard.headers["authorization"].startswith("Basic ")
    assert server.at("/elsewhere") == []

    server.well()
    assert "keys" in loopback.get(f"{server.url}/jwks").json()


def test_silence_a_delay_a_bomb_and_an_answer_without_end(server: OidcServer) -> None:
    server.replies("/silent", silence())
    server.replies("/bomb", zip_bomb())
    server.replies("/endless", endless())
    server.replies("/drip", drip())
    server.delays("/jwks", 0.3)

    for path in ("/silent", "/jwks"):
        with pytest.raises(httpx.ReadTimeout):
            loopback.get(f"{server.url}{path}", timeout=0.2)
    assert "keys" in loopback.get(f"{server.url}/jwks").json()
    with loopback.client() as http:
        with http.stream("GET", f"{server.url}/bomb") as answer:
            packed = int(answer.headers["content-length"])
            assert packed < 100_000
            assert len(answer.read()) == 50_000_000
        with http.stream("GET", f"{server.url}/endless") as answer:
            assert len(next(answer.iter_bytes(1_000_000))) == 1_000_000
        with http.stream("GET", f"{server.url}/drip") as answer:
            assert next(answer.iter_bytes(3)) == b"   "


def test_it_ends_at_once_though_somebody_waits() -> None:
    with running_oidc_server() as server, loopback.client() as http:
        server.replies("/silent", silence())
        with pytest.raises(httpx.ReadTimeout):
            http.get(f"{server.url}/silent", timeout=0.1)
        began = time.monotonic()

    assert time.monotonic() - began < 1


def test_it_speaks_tls_where_there_is_an_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with running_oidc_server(authority=authority) as server:
        there = server.browse(f"{server.url}/authorize?{urlencode(ASKED)}", authority.ca_file)

        assert server.issuer.startswith("https://localhost:")
        assert query_of(there)["iss"] == server.issuer
