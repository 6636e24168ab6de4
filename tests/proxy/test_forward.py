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


def test_a_program_with_https_proxy_set_gets_the_credential_put_in(routed: Keyless) -> None:
    client = routed.forward()

    assert [client.get("/v1/models?a=1").status_code, client.post("/echo", json={"a": 1}).status_code] == [200, 200]

    first, second = routed.upstream.heard()
    assert (first.target, second.body) == ("/v1/models?a=1", '{"a":1}')
    assert first.all("authorization") == second.all("authorization") == [f"Bearer {routed.value}"]
    assert routed.upstream.connections() == 1
    assert routed.token.encode() not in routed.upstream.raw()


def test_a_programs_own_credential_inside_the_tunnel_goes_nowhere(routed: Keyless) -> None:
    routed.forward().get("/echo", headers={"Authorization": "Bearer placeholder"})

    assert routed.upstream.heard()[0].all("authorization") == [f"Bearer {routed.value}"]


def test_a_plain_request_goes_out_as_https(routed: Keyless) -> None:
    url = f"http://localhost:{routed.upstream.port}/v1/models?a=1"
    with routed.proxy.connect() as wire:
        assert wire.say(absolute(routed, url)).hear().status == 200
        assert wire.say(absolute(routed, url, f"Proxy-Authorization: Basic {basic(routed)}")).hear().status == 200

    first, second = routed.upstream.heard()
    assert (first.server, first.target, second.target) == ("main", "/v1/models?a=1", "/v1/models?a=1")
    assert first.all("host") == [f"localhost:{routed.upstream.port}"]
    assert first.all("authorization") == [f"Bearer {routed.value}"]


def test_plain_http_inside_a_tunnel_goes_out_as_https(routed: Keyless) -> None:
    with connect(routed, routed.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        answer = wire.say(b"GET /echo HTTP/1.1\r\nHost: elsewhere\r\n\r\n").hear()

    assert answer.status == 200
    assert [heard.server for heard in routed.upstream.heard()] == ["main"]


@pytest.mark.parametrize(
    "header", ["X-Nothing: 1", "Proxy-Authorization: Basic !", "Proxy-Authorization: Bearer nonsense"]
)
def test_without_a_token_a_forward_request_is_told_to_bring_one(routed: Keyless, header: str) -> None:
    with routed.proxy.connect() as one, routed.proxy.connect() as other:
        answers = [
            connect(routed, one, None, header).hear(),
            other.say(absolute(routed, "http://localhost/", header)).hear(),
        ]

    assert [refusal(answer) for answer in answers] == [(407, "bad_token")] * 2
    assert all(answer.all("proxy-authenticate") for answer in answers)
    assert routed.upstream.connections() == 0


def test_the_gateways_header_does_not_open_a_tunnel(routed: Keyless) -> None:
    with routed.proxy.connect() as wire:
        assert refusal(connect(routed, wire, None, f"Authorization: Bearer {routed.token}").hear()) == (
            407,
            "bad_token",
        )


@pytest.mark.parametrize("where", ["api.example.com:443", "localhost:1", "localhost:443"])
def test_a_host_that_no_route_names_gets_no_tunnel(routed: Keyless, where: str) -> None:
    with routed.proxy.connect() as one, routed.proxy.connect() as other:
        assert refusal(connect(routed, one, where).hear()) == (403, "no_route")
        assert refusal(other.say(absolute(routed, f"http://{where}/")).hear()) == (403, "no_route")


def test_a_tunnel_leads_only_to_the_host_it_was_opened_for(routed: Keyless) -> None:
    routed.route("wrong")
    with connect(routed, routed.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.into_tunnel(routed.proxied.trust(), "localhost")
        wrong = routed.upstream.ports["wrong"]
        for target in ("/echo", f"https://localhost:{wrong}/echo"):
            wire.say(f"GET {target} HTTP/1.1\r\nHost: localhost:{wrong}\r\n\r\n".encode()).hear()

    assert {heard.server for heard in routed.upstream.heard()} == {"main"}


def test_another_name_inside_the_tunnel_is_cut_off(routed: Keyless) -> None:
    with connect(routed, routed.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            wire.into_tunnel(routed.proxied.trust(), "other.example")

    assert routed.upstream.connections() == 0


def test_bytes_that_are_no_http_are_never_forwarded(routed: Keyless) -> None:
    with connect(routed, routed.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        assert refusal(wire.hear()) == (400, "malformed_request")
        assert wire.closed

    assert routed.upstream.connections() == 0


def test_a_tunnel_within_a_tunnel_is_refused(routed: Keyless) -> None:
    with connect(routed, routed.proxy.connect()) as wire:
        assert wire.hear(head_only=True).status == 200
        wire.into_tunnel(routed.proxied.trust(), "localhost")

        assert connect(routed, wire).hear().status in (400, 403, 405)

    assert routed.upstream.heard() == []


def test_the_certificate_of_the_authority_is_all_that_lies_beside_it(routed: Keyless) -> None:
    home = routed.proxied.home

    assert (home / "proxy-ca.pem").read_bytes().count(b"-----BEGIN ") == 1
    assert (home / "proxy-ca.pem").read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
    assert (home / "proxy-ca.key").stat().st_mode & 0o777 == 0o600


def test_a_refusal_inside_a_tunnel_has_the_envelope_too(keyless: Keyless) -> None:
    keyless.route(pathPattern="/v1/*")

    assert refusal(keyless.forward().get("/v2/models")) == (403, "no_route")


def test_a_program_that_does_not_trust_us_learns_nothing(routed: Keyless) -> None:
    client = httpx.Client(proxy=routed.proxy_url(), trust_env=False, verify=ssl.create_default_context())
    with client, pytest.raises(httpx.ConnectError):
        client.get(f"https://localhost:{routed.upstream.port}/")

    assert routed.upstream.connections() == 0
