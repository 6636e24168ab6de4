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

PATIENCE_SECONDS = 30
OFFERED_KEY = "openai-insecure-api-key."


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


# Header and value; `{token}` stands for the token, and Basic is encoded when that is in its place.
PLACES: dict[str, list[tuple[str, str]]] = {
    "a bearer token": [("Authorization", "Bearer {token}")],
    "the key of Anthropic": [("x-api-key", "{token}")],
    "the key of Google": [("X-Goog-Api-Key", "{token}")],
    "the key of Azure": [("api-key", "{token}")],
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
def test_the_token_is_found_where_a_client_puts_its_key(routed: Keyless, place: str) -> None:
    with routed.proxy.connect() as wire:
        assert wire.say(head("/up/echo", *lines_of(PLACES[place], routed.token))).hear().status == 200

    (heard,) = routed.upstream.heard()
    assert heard.all("authorization") == [f"Bearer {routed.value}"]
    assert routed.token.encode() not in routed.upstream.raw()
    assert base64.b64encode(routed.token.encode())[:400] not in routed.upstream.raw()


@pytest.mark.parametrize("place", [place for place in PLACES if place != "several places"])
def test_two_agents_in_one_request_are_refused(routed: Keyless, place: str) -> None:
    with new_keyless(routed.proxied) as other, routed.proxy.connect() as wire:
        other.route("wrong")
        free = "x-goog-api-key" if place != "the key of Google" else "x-api-key"
        lines = [*lines_of(PLACES[place], routed.token), f"{free}: {other.token}"]
        assert refusal(wire.say(head("/up/echo", *lines)).hear()) == (400, "two_tokens")
        # The connection goes on.
        assert wire.say(routed.head("/up/echo")).hear().status == 200

    assert len(routed.upstream.heard()) == 1
    assert routed.token.encode() not in routed.upstream.raw()


@pytest.mark.parametrize("place", PLACES)
def test_a_revoked_token_counts_in_no_place(routed: Keyless, place: str) -> None:
    counted = routed.proxy.counted(401, "bad_token")
    wrong = routed.token[:-4]
    with routed.proxy.connect() as wire:
        assert refusal(wire.say(head("/up/echo", *lines_of(PLACES[place], wrong))).hear()) == (401, "bad_token")

    assert routed.proxy.counted(401, "bad_token") == counted + 1
    assert routed.upstream.connections() == 0


def test_a_refusal_offers_both_ways_to_show_a_token(routed: Keyless) -> None:
    with routed.proxy.connect() as wire:
        answer = wire.say(head("/up/echo")).hear()

    assert refusal(answer) == (401, "bad_token")
    assert answer.all("www-authenticate") == ['Bearer realm="custody"', 'Basic realm="custody"']


@pytest.mark.parametrize("user", ["{token}", "{token}:", "{token}:{token}", "agent:{token}"])
def test_a_tunnel_opens_for_the_token_as_user_or_password(routed: Keyless, user: str) -> None:
    shown = basic(user.format(token=routed.token))
    where = f"localhost:{routed.upstream.port}"
    with routed.proxy.connect() as one, routed.proxy.connect() as other:
        one.say(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert one.hear(head_only=True).status == 200
        other.say(f"GET http://{where}/echo HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert other.hear().status == 200

    assert routed.token.encode() not in routed.upstream.raw()


def test_a_tunnel_of_two_agents_is_refused(routed: Keyless) -> None:
    with new_keyless(routed.proxied) as other, routed.proxy.connect() as wire:
        shown = basic(f"{routed.token}:{other.token}")
        wire.say(f"CONNECT localhost:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: {shown}\r\n\r\n".encode())
        assert refusal(wire.hear()) == (400, "two_tokens")


OFFERS = {
    "among others": (["realtime", OFFERED_KEY, "beta.v1"], "realtime", ["realtime, beta.v1"], "realtime"),
    "alone": ([OFFERED_KEY], None, [], OFFERED_KEY),
    "and nothing is chosen": (["realtime", OFFERED_KEY], None, ["realtime"], None),
}


@pytest.mark.parametrize("name", OFFERS)
def test_a_browsers_websocket_shows_its_token_as_a_subprotocol(routed: Keyless, name: str) -> None:
    offers, chosen, passed, answered = OFFERS[name]
    path = f"/up/ws?choose={chosen}" if chosen else "/up/ws"

    def whole(offer: str) -> str:
        return offer + routed.token if offer == OFFERED_KEY else offer

    opening = connect(
        routed.proxy.url.replace("http", "ws") + path,
        subprotocols=[Subprotocol(whole(offer)) for offer in offers],
        proxy=None,
        open_timeout=PATIENCE_SECONDS,
    )
    with opening as socket:
        assert socket.subprotocol == (answered and whole(answered))
        socket.send("hello")
        assert socket.recv(PATIENCE_SECONDS) == "hello"

    (heard,) = routed.upstream.heard()
    assert heard.all("sec-websocket-protocol") == passed
    assert heard.all("authorization") == [f"Bearer {routed.value}"]
    assert routed.token.encode() not in routed.upstream.raw()


def test_anthropics_own_header_is_enough(keyless: Keyless, monkeypatch: pytest.MonkeyPatch) -> None:
    keyless.route(injectKey="x-api-key", injectFormat="{value}")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "")
    headers = {"Authorization": anthropic.Omit(), "x-api-key": keyless.token}
    base = f"{keyless.proxy.url}/up"
    with anthropic.Anthropic(base_url=base, api_key=keyless.token, default_headers=headers) as client:
        client.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": "one"}])

    (heard,) = keyless.upstream.heard()
    assert heard.all("x-api-key") == [keyless.value]
    assert keyless.token.encode() not in keyless.upstream.raw()


def test_git_shows_the_token_of_its_address_once_it_is_asked(routed: Keyless) -> None:
    git = shutil.which("git")
    assert git, "git is not installed; scripts/set-up says what is needed"
    address = f"http://agent:{routed.token}@127.0.0.1:{routed.proxy.port}/up/team/code.git"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run([git, "ls-remote", address], env=environment, capture_output=True, timeout=30, check=False)

    assert routed.proxy.counted(401, "bad_token") > 0
    heard = routed.upstream.heard()
    assert heard[0].target == "/team/code.git/info/refs?service=git-upload-pack"
    assert heard[0].all("authorization") == [f"Bearer {routed.value}"]
    assert routed.token.encode() not in routed.upstream.raw()


def test_another_agents_token_never_goes_to_the_upstream(keyless: Keyless) -> None:
    keyless.route(injectKey="apikey", injectFormat="{value}", keepAuthorization=True)
    other = str(keyless.tenant.agent().headers["Authorization"])

    for headers in ({"Authorization": other}, {"x-api-key": other.split()[1]}):
        assert refusal(keyless.forward().get("/echo", headers=headers)) == (400, "two_tokens")

    assert keyless.upstream.heard() == []
