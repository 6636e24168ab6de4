"""The credential does not come back, whatever an upstream makes of it."""

import pytest
from websockets.sync.client import connect

from tests.fixtures.eventually import PATIENCE_SECONDS
from tests.fixtures.proxied import Keyless, Proxied, new_keyless
from tests.outside.upstream_answers import spell

FORMS = ("raw", "base64", "base64-inside", "base64url", "url", "json", "hex")


def left_of(keyless: Keyless, body: bytes) -> list[str]:
    """The forms of the value that are still to be found."""
    return [form for form in FORMS if spell(keyless.value, form).encode() in body]


@pytest.mark.parametrize("piece", [1, 2, 7, 10**6])
@pytest.mark.parametrize("form", FORMS)
def test_in_a_body_stars_stand_for_it_however_it_is_cut(with_route: Keyless, form: str, piece: int) -> None:
    answer = with_route.gateway().get(f"/reflect?form={form}&piece={piece}")

    inside = answer.content.removeprefix(b"before <").removesuffix(b"> after")
    assert len(answer.content) == len(inside) + 15
    assert len(inside) == len(spell(with_route.value, form))
    assert left_of(with_route, answer.content) == []
    assert b"*" * (len(inside) - 12) in inside


@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream", "image/png", "text/event-stream"])
def test_the_type_of_a_body_makes_no_difference(with_route: Keyless, kind: str) -> None:
    answer = with_route.gateway().get("/reflect", params={"type": kind})

    assert left_of(with_route, answer.content) == []


@pytest.mark.parametrize("form", FORMS)
def test_in_a_header_stars_stand_for_it(with_route: Keyless, form: str) -> None:
    answer = with_route.gateway().get(f"/reflect?where=header&form={form}")

    shown = answer.headers["X-Shown"]
    assert len(shown) == len(spell(with_route.value, form)) + 2
    assert "****" in shown
    assert left_of(with_route, str(answer.headers.raw).encode()) == []


def test_in_the_status_line_stars_stand_for_it(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head("/up/reflect?where=reason")).hear()

    assert (answer.status, answer.reason) == (401, "Key " + "*" * len(with_route.value))


def test_in_a_location_stars_stand_for_it(keyless: Keyless) -> None:
    keyless.route(injectAs="query", injectKey="to", injectFormat="/next?key={value}")

    answer = keyless.gateway().get("/redirect")

    assert answer.headers["Location"] == "/up/next?key=" + "*" * len(keyless.value)


def test_an_echoed_query_and_body_come_back_with_stars(proxy_world: Proxied) -> None:
    with new_keyless(proxy_world, "sk-plain-0123456789") as keyless:
        keyless.route(pathPattern="/query/*", injectAs="query", injectKey="key")
        keyless.route(pathPattern="/body/*", injectAs="body", injectKey="key")
        client = keyless.gateway()
        answers = [client.get("/query/echo"), client.post("/body/echo", json={})]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert "key=Bearer%20" + "*" * 19 in answers[0].json()["target"]
    assert answers[1].json()["body"] == '{"key":"Bearer ' + "*" * 19 + '"}'


@pytest.mark.parametrize("piece", [1, 5, 10**6])
def test_in_websocket_frames_stars_stand_for_it(with_route: Keyless, piece: int) -> None:
    address = f"{with_route.proxy.url.replace('http', 'ws')}/up/ws?say=1&piece={piece}"
    with connect(
        address,
        additional_headers={"Authorization": f"Bearer {with_route.token}"},
        proxy=None,
        open_timeout=PATIENCE_SECONDS,
    ) as socket:
        assert socket.recv(PATIENCE_SECONDS) == f"<{'*' * len(with_route.value)}>"
        socket.send(with_route.value)
        assert socket.recv(PATIENCE_SECONDS) == "*" * len(with_route.value)


def test_the_credential_of_another_route_is_not_looked_for(with_route: Keyless) -> None:
    answer = with_route.gateway().post("/echo", content=b"plain text that is nobody's secret")

    assert answer.json()["body"] == "plain text that is nobody's secret"


def test_inside_a_tunnel_too(with_route: Keyless) -> None:
    answer = with_route.forward().get("/reflect?piece=3")

    assert answer.text == f"before <{'*' * len(with_route.value)}> after"
