"""Each place in which a client puts what it takes for its API key, and where the agent's token never goes."""

import base64
import os
import shutil
import subprocess

import anthropic
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.fixtures.proxied import Keyless, new_keyless
from tests.proxy.envelope import refusal

PATIENCE_SECONDS = 60
OFFERED_KEY = "openai-insecure-api-key."


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


# Header and value; `{token}` stands for the token, and Basic is encoded when that is in its place.
PLACES: dict[str, list[tuple[str, str]]] = {
    "a bearer token": [("Authorization", "Bearer {token}")],
    "the key of Anthropic": [("x-api-key", "{token}")],
    "the key of Google": [("X-Goog-Api-Key", "{token}")],
    "the key of Azure": [("api-key", "{token}")],
    "the key of a hosted database": [("apikey", "{token}")],
    "the key of Azure's other services": [("Ocp-Apim-Subscription-Key", "{token}")],
    "the token of GitLab": [("PRIVATE-TOKEN", "{token}")],
    "the token of one of its jobs": [("JOB-TOKEN", "{token}")],
    "the token of GitHub's older clients": [("Authorization", "token {token}")],
    "a key behind another word": [("Authorization", "Api-Key {token}")],
    "a key without a word": [("Authorization", "{token}")],
    "the key of a client for AWS": [
        (
            "Authorization",
            "AWS4-HMAC-SHA256 Credential={token}/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=0",
        )
    ],
    "a password": [("Authorization", "Basic agent:{token}")],
    "a user without a password": [("Authorization", "Basic {token}:")],
    "a user with a placeholder": [("Authorization", "Basic {token}:x-oauth-basic")],
    "user and password": [("Authorization", "Basic {token}:{token}")],
    "several places": [("Authorization", "Bearer {token}"), ("x-api-key", "{token}"), ("api-key", "{token}")],
    "a key beside a placeholder": [("Authorization", "Bearer placeholder"), ("x-api-key", "{token}")],
    "a key beside a token of somebody else's": [("Authorization", "Bearer e30.e30.e30"), ("api-key", "{token}")],
    "the same key twice": [("x-api-key", "{token}"), ("x-api-key", "{token}")],
}


def lines_of(place: list[tuple[str, str]], token: str) -> list[str]:
    lines = []
    for name, value in place:
        text = value.format(token=token)
        lines.append(f"{name}: {basic(text[6:]) if text.startswith('Basic ') else text}")
    return lines


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: proxy", *lines, "", ""]).encode()


@pytest.mark.parametrize("place", PLACES)
def test_the_token_is_found_where_a_client_puts_its_key(with_route: Keyless, place: str) -> None:
    with with_route.proxy.connect() as wire:
        assert wire.say(head("/up/echo", *lines_of(PLACES[place], with_route.token))).hear().status == 200

    (heard,) = with_route.upstream.requests()
    assert heard.all("authorization") == [f"Bearer {with_route.value}"]
    assert with_route.token.encode() not in with_route.upstream.raw()
    assert base64.b64encode(with_route.token.encode())[:400] not in with_route.upstream.raw()


@pytest.mark.parametrize("place", [place for place in PLACES if place != "several places"])
def test_two_agents_in_one_request_are_refused(with_route: Keyless, place: str) -> None:
    with new_keyless(with_route.proxied) as other, with_route.proxy.connect() as wire:
        other.route("wrong")
        free = "x-goog-api-key" if place != "the key of Google" else "x-api-key"
        lines = [*lines_of(PLACES[place], with_route.token), f"{free}: {other.token}"]
        assert refusal(wire.say(head("/up/echo", *lines)).hear()) == (400, "two_tokens")
        # The connection goes on.
        assert wire.say(with_route.head("/up/echo")).hear().status == 200

    assert len(with_route.upstream.requests()) == 1
    assert with_route.token.encode() not in with_route.upstream.raw()


@pytest.mark.parametrize("place", PLACES)
def test_a_revoked_token_counts_in_no_place(with_route: Keyless, place: str) -> None:
    counted = with_route.proxy.count(401, "bad_token")
    wrong = with_route.token[:-4]
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(head("/up/echo", *lines_of(PLACES[place], wrong))).hear()) == (401, "bad_token")

    assert with_route.proxy.count(401, "bad_token") == counted + 1
    assert with_route.upstream.connections() == 0


@pytest.mark.parametrize("name", ["X-Request-Id", "X-Note", "Cookie", "X-Key-Id"])
def test_a_token_in_a_header_for_something_else_counts_for_nothing(with_route: Keyless, name: str) -> None:
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(head("/up/echo", f"{name}: {with_route.token}")).hear()) == (401, "bad_token")

    assert with_route.upstream.connections() == 0


def test_a_refusal_offers_both_ways_to_show_a_token(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(head("/up/echo")).hear()

    assert refusal(answer) == (401, "bad_token")
    assert answer.all("www-authenticate") == ['Bearer realm="custody"', 'Basic realm="custody"']


@pytest.mark.parametrize("user", ["{token}", "{token}:", "{token}:{token}", "agent:{token}"])
def test_a_tunnel_opens_for_the_token_as_user_or_password(with_route: Keyless, user: str) -> None:
    shown = basic(user.format(token=with_route.token))
    where = f"localhost:{with_route.upstream.port}"
    with with_route.proxy.connect() as one, with_route.proxy.connect() as other:
        one.say(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert one.hear(head_only=True).status == 200
        other.say(f"GET http://{where}/echo HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert other.hear().status == 200

    assert with_route.token.encode() not in with_route.upstream.raw()


def test_a_tunnel_of_two_agents_is_refused(with_route: Keyless) -> None:
    with new_keyless(with_route.proxied) as other, with_route.proxy.connect() as wire:
        shown = basic(f"{with_route.token}:{other.token}")
        wire.say(f"CONNECT localhost:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert refusal(wire.hear()) == (400, "two_tokens")


OFFERS = {
    "among others": (["realtime", OFFERED_KEY, "beta.v1"], "realtime", ["realtime, beta.v1"], "realtime"),
    "alone": ([OFFERED_KEY], None, [], OFFERED_KEY),
    "and nothing is chosen": (["realtime", OFFERED_KEY], None, ["realtime"], None),
}


@pytest.mark.parametrize("name", OFFERS)
def test_a_browsers_websocket_shows_its_token_as_a_subprotocol(with_route: Keyless, name: str) -> None:
    offers, chosen, passed, answered = OFFERS[name]
    path = f"/up/ws?choose={chosen}" if chosen else "/up/ws"

    def whole(offer: str) -> str:
        return offer + with_route.token if offer == OFFERED_KEY else offer

    opening = connect(
        with_route.proxy.url.replace("http", "ws") + path,
        subprotocols=[Subprotocol(whole(offer)) for offer in offers],
        proxy=None,
        open_timeout=PATIENCE_SECONDS,
    )
    with opening as socket:
        assert socket.subprotocol == (answered and whole(answered))
        socket.send("hello")
        assert socket.recv(PATIENCE_SECONDS) == "hello"

    (heard,) = with_route.upstream.requests()
    assert heard.all("sec-websocket-protocol") == passed
    assert heard.all("authorization") == [f"Bearer {with_route.value}"]
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_anthropics_own_header_is_enough(keyless: Keyless, monkeypatch: pytest.MonkeyPatch) -> None:
    keyless.route(injectKey="x-api-key", injectFormat="{value}")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "")
    headers = {"Authorization": anthropic.Omit(), "x-api-key": keyless.token}
    base = f"{keyless.proxy.url}/up"
    with anthropic.Anthropic(base_url=base, api_key=keyless.token, default_headers=headers) as client:
        client.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": "one"}])

    (heard,) = keyless.upstream.requests()
    assert heard.all("x-api-key") == [keyless.value]
    assert keyless.token.encode() not in keyless.upstream.raw()


def test_git_shows_the_token_of_its_address_once_it_is_asked(with_route: Keyless) -> None:
    git = shutil.which("git")
    assert git, "git is not installed; scripts/set-up says what is needed"
    address = f"http://agent:{with_route.token}@127.0.0.1:{with_route.proxy.port}/up/team/code.git"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run([git, "ls-remote", address], env=environment, capture_output=True, timeout=30, check=False)

    assert with_route.proxy.count(401, "bad_token") > 0
    heard = with_route.upstream.requests()
    assert heard[0].target == "/team/code.git/info/refs?service=git-upload-pack"
    assert heard[0].all("authorization") == [f"Bearer {with_route.value}"]
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_another_agents_token_never_goes_to_the_upstream(keyless: Keyless) -> None:
    keyless.route(injectKey="apikey", injectFormat="{value}", keepAuthorization=True)
    other = str(keyless.tenant.agent().headers["Authorization"])

    for headers in ({"Authorization": other}, {"x-api-key": other.split()[1]}):
        assert refusal(keyless.forward().get("/echo", headers=headers)) == (400, "two_tokens")

    assert keyless.upstream.requests() == []
