"""The forward form: HTTPS_PROXY with the proxy's own certificate, and plain requests that go out as HTTPS."""

import base64
import ssl

import httpx
import pytest

from tests.fixtures.proxied import Keyless
from tests.fixtures.wire import Wire
from tests.proxy.envelope import refusal


def basic(keyless: Keyless) -> str:
    return base64.b64encode(f"agent:{keyless.token}".encode()).decode()


def connect(keyless: Keyless, wire: Wire, authority: str | None = None, *headers: str) -> Wire:
    where = authority or f"localhost:{keyless.upstream.port}"
    headers = headers or (f"Proxy-Authorization: Basic {basic(keyless)}",)
    return wire.say("\r\n".join([f"CONNECT {where} HTTP/1.1", f"Host: {where}", *headers, "", ""]).encode())


def absolute(keyless: Keyless, url: str, *headers: str) -> bytes:
    headers = headers or (f"Proxy-Authorization: Bearer {keyless.token}",)
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: somewhere.else", *headers, "", ""]).encode()


def test_a_program_with_https_proxy_set_gets_the_credential_put_in(with_route: Keyless) -> None:
    client = with_route.forward()

    assert [client.get("/v1/models?a=1").status_code, client.post("/echo", json={"a": 1}).status_code] == [200, 200]

    first, second = with_route.upstream.requests()
    assert (first.target, second.body) == ("/v1/models?a=1", '{"a":1}')
    assert first.all("authorization") == second.all("authorization") == [f"Bearer {with_route.value}"]
    assert with_route.upstream.connections() == 1
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_a_programs_own_credential_inside_the_tunnel_goes_nowhere(with_route: Keyless) -> None:
    with_route.forward().get("/echo", headers={"Authorization": "Bearer placeholder"})

    assert with_route.upstream.requests()[0].all("authorization") == [f"Bearer {with_route.value}"]


def test_a_plain_request_goes_out_as_https(with_route: Keyless) -> None:
    url = f"http://localhost:{with_route.upstream.port}/v1/models?a=1"
    with with_route.proxy.connect() as wire:
        assert wire.say(absolute(with_route, url)).hear().status == 200
        assert (
            wire.say(absolute(with_route, url, f"Proxy-Authorization: Basic {basic(with_route)}")).hear().status == 200
        )

    first, second = with_route.upstream.requests()
    assert (first.server, first.target, second.target) == ("main", "/v1/models?a=1", "/v1/models?a=1")
    assert first.all("host") == [f"localhost:{with_route.upstream.port}"]
    assert first.all("authorization") == [f"Bearer {with_route.value}"]


def test_plain_http_inside_a_tunnel_goes_out_as_https(with_route: Keyless) -> None:
    with connect(with_route, with_route.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        answer = wire.say(b"GET /echo HTTP/1.1\r\nHost: elsewhere\r\n\r\n").hear()

    assert answer.status == 200
    assert [heard.server for heard in with_route.upstream.requests()] == ["main"]


@pytest.mark.parametrize(
    "header", ["X-Nothing: 1", "Proxy-Authorization: Basic !", "Proxy-Authorization: Bearer nonsense"]
)
def test_without_a_token_a_forward_request_is_told_to_bring_one(with_route: Keyless, header: str) -> None:
    with with_route.proxy.connect() as one, with_route.proxy.connect() as other:
        answers = [
            connect(with_route, one, None, header).hear(),
            other.say(absolute(with_route, "http://localhost/", header)).hear(),
        ]

    assert [refusal(answer) for answer in answers] == [(407, "bad_token")] * 2
    assert all(answer.all("proxy-authenticate") for answer in answers)
    assert with_route.upstream.connections() == 0


def test_the_gateways_header_does_not_open_a_tunnel(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        assert refusal(connect(with_route, wire, None, f"Authorization: Bearer {with_route.token}").hear()) == (
            407,
            "bad_token",
        )


@pytest.mark.parametrize("where", ["api.example.com:443", "localhost:1", "localhost:443"])
def test_a_host_that_no_route_names_gets_no_tunnel(with_route: Keyless, where: str) -> None:
    with with_route.proxy.connect() as one, with_route.proxy.connect() as other:
        assert refusal(connect(with_route, one, where).hear()) == (403, "no_route")
        assert refusal(other.say(absolute(with_route, f"http://{where}/")).hear()) == (403, "no_route")


def test_a_tunnel_leads_only_to_the_host_it_was_opened_for(with_route: Keyless) -> None:
    with_route.route("wrong")
    with connect(with_route, with_route.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.into_tunnel(with_route.proxied.trust(), "localhost")
        wrong = with_route.upstream.ports["wrong"]
        for target in ("/echo", f"https://localhost:{wrong}/echo"):
            wire.say(f"GET {target} HTTP/1.1\r\nHost: localhost:{wrong}\r\n\r\n".encode()).hear()

    assert {heard.server for heard in with_route.upstream.requests()} == {"main"}


def test_another_name_inside_the_tunnel_is_cut_off(with_route: Keyless) -> None:
    with connect(with_route, with_route.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            wire.into_tunnel(with_route.proxied.trust(), "other.example")

    assert with_route.upstream.connections() == 0


def test_bytes_that_are_no_http_are_never_forwarded(with_route: Keyless) -> None:
    with connect(with_route, with_route.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        assert refusal(wire.hear()) == (400, "malformed_request")
        assert wire.closed

    assert with_route.upstream.connections() == 0


def test_a_tunnel_within_a_tunnel_is_refused(with_route: Keyless) -> None:
    with connect(with_route, with_route.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.into_tunnel(with_route.proxied.trust(), "localhost")

        assert connect(with_route, wire).hear().status in (400, 403, 405)

    assert with_route.upstream.requests() == []


def test_the_certificate_of_the_authority_is_all_that_lies_beside_it(with_route: Keyless) -> None:
    home = with_route.proxied.home

    assert (home / "proxy-ca.pem").read_bytes().count(b"-----BEGIN ") == 1
    assert (home / "proxy-ca.pem").read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
    assert (home / "proxy-ca.key").stat().st_mode & 0o777 == 0o600


def test_a_refusal_inside_a_tunnel_has_the_envelope_too(keyless: Keyless) -> None:
    keyless.route(pathPattern="/v1/*")

    assert refusal(keyless.forward().get("/v2/models")) == (403, "no_route")


def test_a_program_that_does_not_trust_us_learns_nothing(with_route: Keyless) -> None:
    client = httpx.Client(
        proxy=with_route.proxy_url(), trust_env=False, timeout=60, verify=ssl.create_default_context()
    )
    with client, pytest.raises(httpx.ConnectError):
        client.get(f"https://localhost:{with_route.upstream.port}/")

    assert with_route.upstream.connections() == 0
