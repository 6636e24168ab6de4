"""Requests that nobody means well with: none reaches another host or shows a credential; each gets its status.

One table. In the requests words in capitals stand for tokens and ports (see `_words`).
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied, Proxy, new_keyless
from tests.proxy.envelope import refusal

CUT: Literal["cut"] = "cut"
PASSED: Literal["passed"] = "passed"
BAD_TOKEN, BAD_PROXY_TOKEN = (401, "bad_token"), (407, "bad_token")
TWO_TOKENS = (400, "two_tokens")
TARGET, MALFORMED = (400, "malformed_target"), (400, "malformed_request")
NO_ROUTE, UNKNOWN = (403, "no_route"), (403, "unknown_alias")
FAILED, SLOW = (502, "upstream_failed"), (504, "upstream_timeout")
OWN, NARROW = "Authorization: Bearer TOKEN", "Authorization: Bearer SCOPED"
CRLF = "\r\n"
Wanted = tuple[int, str] | Literal["cut", "passed"]
SMUGGLED = "GET /up/smuggled HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\n\r\n"


class Attack(msgspec.Struct, frozen=True):
    """Bytes, what they should get, and whether the right upstream hears of them (None: it may, by chance).

    `inside`: said in a tunnel. `hurried`: to the proxy that does not wait.
    """

    raw: str
    wanted: Wanted
    reaches: bool | None = False
    inside: bool = False
    hurried: bool = False


def request(path: str, wanted: Wanted, *headers: str, method: str = "GET", body: str = "", **more: bool) -> Attack:
    """A gateway request that is well but for what its headers and path say."""
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *(headers or (OWN,))]
    return Attack("\r\n".join([*lines, "", body]), wanted, **more)


def good(path: str, *headers: str, **more: str) -> Attack:
    """One that looks hostile and is not: it reaches the right upstream and no other."""
    return request(path, PASSED, *headers, reaches=True, **more)  # type: ignore[arg-type]


def with_token(token: str, *, wanted: Wanted = BAD_TOKEN) -> Attack:
    """A request with this header for a token."""
    return request("/up/echo", wanted, f"Authorization: {token}")


def host(text: str, wanted: Wanted = TARGET) -> Attack:
    """A request for a host named in the path."""
    return request(f"/proxy/{text}/echo", wanted)


def absolute(url: str, wanted: Wanted, *headers: str) -> Attack:
    """A plain request as a proxy gets it."""
    return Attack("\r\n".join([f"GET {url} HTTP/1.1", *(headers or FORWARD), "", ""]), wanted, wanted == PASSED)


def tunnel(authority: str, wanted: Wanted, *headers: str) -> Attack:
    """A tunnel."""
    return Attack("\r\n".join([f"CONNECT {authority} HTTP/1.1", *(headers or FORWARD), "", ""]), wanted)


def body(
    framing: str, sent: str, wanted: Wanted = MALFORMED, method: str = "POST", *, reaches: bool | None = False
) -> Attack:
    """A request whose end others may see elsewhere, with a second request behind it; its target is its own alone."""
    target = f"/up/count?{hashlib.sha256(f'{method} {framing} {sent}'.encode()).hexdigest()[:16]}"
    head = f"{method} {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\n{framing}\r\n\r\n{sent}"
    return Attack(head + SMUGGLED, wanted, reaches)


def inside(line: str, wanted: Wanted, *headers: str) -> Attack:
    """A request within a tunnel to the right upstream."""
    raw = "\r\n".join([f"{line} HTTP/1.1", *(headers or ("Host: a",)), "", ""])
    return Attack(raw, wanted, wanted == PASSED, inside=True)


FORWARD = ("Host: a", "Proxy-Authorization: Bearer TOKEN")
MAIN_HOST, WRONG_HOST = ("Host: localhost:UP", FORWARD[1]), ("Host: localhost:WRONG", FORWARD[1])
ATTACKS: dict[str, Attack] = {
    # Who asks.
    "no token": request("/up/echo", BAD_TOKEN, "X-Nothing: 1"),
    "an expired token": with_token("Bearer EXPIRED"),
    "a token of another tenant": with_token("Bearer FOREIGN", wanted=NO_ROUTE),
    "alg none": with_token("Bearer ALG_NONE"),
    "alg none with the old signature": with_token("Bearer ALG_NONE_SIGNED"),
    "HS256 keyed with the public key": with_token("Bearer HS256"),
    "a signature of another key": with_token("Bearer OTHER_KEY"),
    "another kid": with_token("Bearer OTHER_KID"),
    "no kid": with_token("Bearer NO_KID"),
    "a key within the token": with_token("Bearer OWN_JWK"),
    "claims changed under the signature": with_token("Bearer CHANGED"),
    "a signature cut short": with_token("Bearer TRUNCATED"),
    "a token of 5000 characters": with_token("Bearer " + "a." * 2500),
    "a tenant's key for a token": with_token("Bearer TENANT_KEY"),
    "two headers, the second good": request("/up/echo", BAD_TOKEN, "Authorization: Bearer x", OWN),
    "two headers, both good": request("/up/echo", BAD_TOKEN, OWN, OWN),
    "two tokens in one header": with_token("Bearer TOKEN, Bearer FOREIGN"),
    "a token without a scheme": good("/up/echo", "Authorization: TOKEN"),
    "a token as a password": good("/up/echo", "Authorization: Basic BASIC"),
    "two agents, one a key": request("/up/echo", TWO_TOKENS, OWN, "X-Api-Key: FOREIGN"),
    "two agents, one expired": request("/up/echo", TWO_TOKENS, "X-Api-Key: EXPIRED", "X-Goog-Api-Key: TOKEN"),
    "two agents, one forged": request("/up/echo", TWO_TOKENS, OWN, "Api-Key: CHANGED"),
    "a forged token and a placeholder": request("/up/echo", BAD_TOKEN, "X-Api-Key: ALG_NONE_SIGNED", "Api-Key: mine"),
    "two agents among subprotocols": request(
        "/up/echo", TWO_TOKENS, "Sec-WebSocket-Protocol: openai-insecure-api-key.TOKEN, openai-insecure-api-key.FOREIGN"
    ),
    "a token in a subprotocol of another name": request("/up/echo", BAD_TOKEN, "Sec-WebSocket-Protocol: key.TOKEN"),
    "a key with a blank in it": request("/up/echo", BAD_TOKEN, "X-Api-Key: TOKEN TOKEN"),
    "a token behind ten thousand bytes": request(
        "/up/echo", BAD_TOKEN, f"Sec-WebSocket-Protocol: {'a, ' * 4000}openai-insecure-api-key.TOKEN"
    ),
    "a token in a header with an underscore": request("/up/echo", BAD_TOKEN, "X_Api_Key: TOKEN"),
    "a token in the query": request("/up/echo?access_token=TOKEN", BAD_TOKEN, "X-Nothing: 1"),
    "a token for proxies at the gateway": request("/up/echo", BAD_TOKEN, "Proxy-Authorization: Bearer TOKEN"),
    "a token in a cookie": request("/up/echo", BAD_TOKEN, "Cookie: Authorization=Bearer TOKEN"),
    "a token with a line end": request("/up/echo", MALFORMED, "Authorization: Bearer\r TOKEN"),
    "the scheme in small letters": good("/up/echo", "Authorization: bearer TOKEN"),
    "the header in capitals": good("/up/echo", "AUTHORIZATION: Bearer TOKEN"),
    "a tunnel with a token for the gateway": tunnel("localhost:UP", BAD_PROXY_TOKEN, "Host: a", OWN),
    "a tunnel with an expired token": tunnel("localhost:UP", BAD_PROXY_TOKEN, "Proxy-Authorization: Bearer EXPIRED"),
    "a tunnel with two tokens": tunnel("localhost:UP", BAD_PROXY_TOKEN, *FORWARD, "Proxy-Authorization: Basic BASIC"),
    "a plain request with a token for the gateway": absolute("http://localhost:UP/echo", BAD_PROXY_TOKEN, OWN),
    # Where to, in the path.
    "a host that no route names": host("localhost:WRONG", NO_ROUTE),
    "a host behind a user": host("localhost:UP@localhost:WRONG"),
    "a user": host("user:password@localhost:UP"),
    "a trailing dot": host("localhost.:UP"),
    "only dots": host("..", TARGET),
    "an IPv4 address": host("127.0.0.1:UP"),
    "an IPv4 address in octal": host("0177.0.0.1:UP"),
    "an IPv4 address in hex": host("0x7f.0.0.1:UP"),
    "an IPv4 address as one number": host("2130706433:UP"),
    "an IPv4 address as one hex number": host("0x7f000001:UP"),
    "a short IPv4 address": host("127.1:UP"),
    "an IPv6 address": host("[::1]:UP"),
    "an IPv6 address without brackets": host("::1"),
    "a metadata address": host("169.254.169.254"),
    "port 0": host("localhost:0"),
    "port 65536": host("localhost:65536"),
    "a port with zeros before it": host("localhost:0UP"),
    "a port that is none": host("localhost:https"),
    "no port behind the colon": host("localhost:"),
    "another port": host("localhost:1", NO_ROUTE),
    "letters outside ASCII": host("l\u00f6calhost:UP"),
    "the same in escapes": host("l%C3%B6calhost:UP"),
    "the same in IDNA": host("xn--lcalhost-n4a:UP", NO_ROUTE),
    "letters that look alike": host("\uff4cocalhost:UP"),
    "an escaped colon": host("localhost%3AUP"),
    "an escaped slash in the host": host("localhost:UP%2f@localhost:WRONG"),
    "a backslash in the host": host("localhost:UP\\@localhost:WRONG"),
    "a fragment in the host": host("localhost:UP#@localhost:WRONG"),
    "a semicolon in the host": host("localhost:UP;localhost:WRONG"),
    "a space in the host": host("localhost:UP localhost:WRONG", MALFORMED),
    "a URL in the path": request("/proxy/http://localhost:WRONG/echo", TARGET),
    "an empty host": request("/proxy//echo", (403, "unknown_alias")),
    "capitals": good("/proxy/LOCALHOST:UP/echo"),
    "a reserved alias": request("/metrics", UNKNOWN),
    "an alias within the path": request("/up/wrong/echo", PASSED, reaches=True),
    # Where to, otherwise.
    "another host in the Host header": Attack(
        "GET /up/echo HTTP/1.1\r\nHost: localhost:WRONG\r\nAuthorization: Bearer TOKEN\r\n\r\n", PASSED, reaches=True
    ),
    "two Host headers": request("/up/echo", MALFORMED, OWN, "Host: localhost:WRONG"),
    "no Host header": Attack("GET /up/echo HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\n\r\n", MALFORMED),
    "another host in headers that proxies read": good(
        "/up/echo", OWN, "X-Forwarded-Host: localhost:WRONG", "Forwarded: host=localhost:WRONG"
    ),
    "a URL that overrules the Host header": absolute("http://localhost:WRONG/echo", NO_ROUTE, *MAIN_HOST),
    "a Host header that does not overrule the URL": absolute("http://localhost:UP/echo", PASSED, *WRONG_HOST),
    "a user in a URL": absolute("http://localhost:UP@localhost:WRONG/echo", MALFORMED),
    "an address in a URL": absolute("http://127.0.0.1:UP/echo", TARGET),
    "a trailing dot in a URL": absolute("http://localhost.:UP/echo", TARGET),
    "a URL without a host": absolute("http:///echo", MALFORMED),
    "another scheme": absolute("ftp://localhost:UP/echo", MALFORMED),
    "a scheme and nothing else": absolute("http:", MALFORMED),
    "two slashes before a host": request("//localhost:WRONG/echo", (403, "unknown_alias")),
    "a star": request("*", TARGET, method="OPTIONS"),
    "a path without a slash": request("up/echo", MALFORMED),
    "a tunnel to another host": tunnel("localhost:WRONG", NO_ROUTE),
    "a tunnel behind a user": tunnel("localhost:UP@localhost:WRONG", MALFORMED),
    "a tunnel to an address": tunnel("127.0.0.1:UP", TARGET),
    "a tunnel to an IPv6 address": tunnel("[::1]:UP", TARGET),
    "a tunnel to port 0": tunnel("localhost:0", MALFORMED),
    "a tunnel to port 65536": tunnel("localhost:65536", MALFORMED),
    "a tunnel to a URL": tunnel("http://localhost:UP/", MALFORMED),
    "a tunnel to a path": tunnel("/up/echo", TARGET),
    "a tunnel to nowhere": tunnel(":443", MALFORMED),
    "another Host header in a tunnel": inside("GET /echo", PASSED, "Host: localhost:WRONG"),
    "a token inside a tunnel": inside("GET /echo", PASSED, "Host: a", OWN),
    "an alias inside a tunnel": inside("GET /wrong/echo", PASSED),
    "a tunnel inside a tunnel": inside("CONNECT localhost:WRONG", (400, "method_not_forwarded"), *FORWARD),
    "a path that leads up inside a tunnel": inside("GET /a/../b", TARGET),
    # Paths.
    "up": request("/up/../wrong/echo", TARGET),
    "up in escapes": request("/up/%2e%2e/wrong/echo", TARGET),
    "up with an escaped slash": request("/up/..%2fwrong/echo", TARGET),
    "up, escaped twice": request("/up/%252e%252e/wrong/echo", TARGET),
    "up in full-width dots": request("/up/%EF%BC%8E%EF%BC%8E/wrong/echo", TARGET),
    "up with a full-width slash": request("/up/..%EF%BC%8Fwrong/echo", TARGET),
    "up with a parameter": request("/up/..;x/wrong/echo", TARGET),
    "up, overlong": request("/up/%c0%ae%c0%ae/wrong/echo", TARGET),
    "up with backslashes": request("/up/..\\wrong", TARGET),
    "up with escaped backslashes": request("/up/%5c..%5cwrong", TARGET),
    "up behind the alias": request("/up%2f..%2fwrong/echo", TARGET),
    "a dot": request("/up/./echo", TARGET),
    "an empty segment": good("/up//echo"),
    "an empty segment past the route": request("/up//v1/admin", NO_ROUTE, NARROW),
    "a zero": request("/up/echo%00", TARGET),
    "a line end": request("/up/echo%0d%0aX-Injected:%201", TARGET),
    "a line end in the query": good("/up/echo?a=%0d%0aX-Injected:%201"),
    "half an escape": request("/up/echo%2", TARGET),
    "no escape": request("/up/echo%zz", TARGET),
    "bytes outside ASCII": request("/up/\u00e9", TARGET),
    "a fragment": request("/up/echo#x", TARGET),
    "a fragment in the query": request("/up/echo?a#x", TARGET),
    "a tab": request("/up/e\tcho", MALFORMED),
    "a path of 17 KiB": request("/up/" + "a" * 17 * 1024, TARGET),
    "a path of 65 KiB": request("/up/" + "a" * 65 * 1024, (431, "head_too_large")),
    "out of the route": request("/up/admin", NO_ROUTE, NARROW),
    "out of the route through it": request("/up/v1/../admin", TARGET, NARROW),
    "out of the route in escapes": request("/up/v1/%2E%2E/admin", TARGET, NARROW),
    "into the route by an escaped slash": request("/up/v1%2Fadmin", NO_ROUTE, NARROW),
    "another case of the route": request("/up/V1/admin", NO_ROUTE, NARROW),
    "the route in escapes": good("/up/%761/admin", NARROW),
    # Where a message ends.
    "length and chunks": body("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
    "chunks and length": body("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
    "two lengths": body("Content-Length: 0\r\nContent-Length: 5", "12345"),
    "a list of lengths": body("Content-Length: 0, 5", "12345"),
    "a length with a sign": body("Content-Length: +5", "12345"),
    "a length in hex": body("Content-Length: 0x5", "12345"),
    "a length with a space": body("Content-Length: 0 5", "12345"),
    "an endless length": body("Content-Length: " + "9" * 40, "12345", (413, "body_too_large")),
    "an empty length": body("Content-Length:", ""),
    "a space before the colon": body("Content-Length : 5", "12345"),
    "a space before the colon of chunks": body("Transfer-Encoding : chunked", "0\r\n\r\n"),
    "a folded length": body("Content-Length:\r\n 5", "12345"),
    "chunks twice": body("Transfer-Encoding: chunked, chunked", "0\r\n\r\n"),
    "chunks in two headers": body("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n"),
    "another coding": body("Transfer-Encoding: xchunked", "0\r\n\r\n"),
    "a length behind a vertical tab": body("Content-Length: \x0b5", "12345"),
    "chunks behind a vertical tab": body("Transfer-Encoding: \x0bchunked", "0\r\n\r\n"),
    "compressed chunks": body("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"),
    "a chunk of no size": body("Transfer-Encoding: chunked", "\r\n\r\n", reaches=None),
    "a chunk of a negative size": body("Transfer-Encoding: chunked", "-1\r\n\r\n", reaches=None),
    "a chunk of a hex size": body("Transfer-Encoding: chunked", "0x0\r\n\r\n", reaches=None),
    "a chunk of an endless size": body("Transfer-Encoding: chunked", "f" * 30 + "\r\n", reaches=None),
    "a chunk longer than its size": body("Transfer-Encoding: chunked", "1\r\nabcdef\r\n0\r\n\r\n", reaches=None),
    "a coding with very many blanks": body(f"Transfer-Encoding: a{' ' * 60_000}b", ""),
    "a length with very many digits": body(f"Content-Length: {'1' * 4_000}", ""),
    "a chunk line with very many blanks": body("Transfer-Encoding: chunked", f"5;{' ' * 60_000}\nx\r\n", reaches=None),
    "a trailer with very many blanks": body("Transfer-Encoding: chunked", f"0\r\na:{' ' * 60_000}\0\r\n", reaches=None),
    "empty lines before a request": Attack(f"{CRLF * 100}GET /up/echo HTTP/1.1{CRLF}{OWN}{CRLF * 2}", MALFORMED),
    "a chunk line without end": body("Transfer-Encoding: chunked", "1;" + "a" * 70_000, reaches=None),
    "trailers without end": body("Transfer-Encoding: chunked", "0\r\n" + "A: b\r\n" * 20_000, reaches=None),
    "another request as the body of a refused one": Attack(
        f"POST /up/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{SMUGGLED}", BAD_TOKEN
    ),
    "an upgrade to h2c": good(
        "/up/echo", OWN, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
    ),
    "an upgrade to a websocket by POST": good(
        "/up/echo", OWN, "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0", method="POST"
    ),
    "a header of the connection's named there": good(
        "/up/count",
        OWN,
        "Connection: Content-Length, Authorization, Host",
        "Content-Length: 2",
        method="POST",
        body="ab",
    ),
    # Headers.
    "a header of 65 KiB": request("/up/echo", (431, "head_too_large"), OWN, "X: " + "a" * 65_536),
    "ten thousand headers": request("/up/echo", (431, "head_too_large"), OWN, *["X: abcdefgh"] * 10_000),
    "a header with a zero": request("/up/echo", MALFORMED, OWN, "X: a\0b"),
    "a header without a name": request("/up/echo", MALFORMED, OWN, ": b"),
    "a method in small letters": request("/up/echo", (400, "method_not_forwarded"), method="get"),
    "a method in mixed letters": inside("helloGET /echo", (400, "method_not_forwarded")),
    "TRACE": request("/up/echo", (400, "method_not_forwarded"), method="TRACE"),
    "another version": Attack("GET /up/echo HTTP/3.0\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\n\r\n", MALFORMED),
    # Upstreams.
    "an upstream that never answers": request("/up/stall", SLOW, reaches=True, hurried=True),
    "an upstream that stalls in its body": request("/up/stall?after=body", CUT, reaches=True, hurried=True),
    "an upstream that never finishes its handshake": request("/mute/echo", SLOW, hurried=True),
    "an upstream that resets": request("/up/reset", FAILED, reaches=True),
    "an upstream that promises more": request("/up/short", CUT, reaches=True),
    "an upstream that promises less": request("/up/long", PASSED, reaches=True),
    "an upstream that breaks its chunks": request("/up/bad-chunks", CUT, reaches=True),
    "an upstream that answers 1 GB": request(f"/up/zeros?size={10**9}", CUT, reaches=True),
    "an upstream that answers a head without end": request("/up/endless-head", FAILED, reaches=True),
    "an upstream that answers no HTTP": request("/up/garbage", FAILED, reaches=True),
    "an upstream that shows the credential": request("/up/reflect", PASSED, reaches=True),
    "an upstream that shows it compressed": request("/up/coded", PASSED, reaches=True),
    "an upstream that answers 10 MB of compressed zeros": request("/up/coded?zeros=10485760", CUT, reaches=True),
    "an upstream that breaks its coding off": request("/up/coded?cut=20", CUT, reaches=True),
    "an upstream that shows it in a trailer": request("/up/trailers", PASSED, reaches=True),
    "an upstream that leads elsewhere": request("/up/redirect?to=https://localhost:WRONG/", PASSED, reaches=True),
    "an upstream that signs for itself": request("/self-signed/echo", FAILED),
    "an upstream of another name": request("/wrong-name/echo", FAILED),
    "an upstream whose certificate has expired": request("/expired/echo", FAILED),
    "an upstream without TLS": request("/plain/echo", FAILED),
}


class Stage(msgspec.Struct):
    """The agent that attacks, the words of its requests, and what must never be seen."""

    keyless: Keyless
    words: dict[str, str]
    credentials: list[bytes]
    tokens: list[bytes]


@pytest.fixture(scope="module")
def stage(proxy_world: Proxied) -> Iterator[Stage]:
    """An agent with routes to every upstream but the wrong one, a narrow one, and a stranger."""
    with new_keyless(proxy_world) as keyless, new_keyless(proxy_world) as stranger, new_keyless(proxy_world) as narrow:
        for server in ("main", "mute", "self-signed", "wrong-name", "expired", "plain"):
            keyless.route(server)
        stranger.route("wrong")
        narrow.route(pathPattern="/v1/*")
        words = _words(keyless, stranger, narrow)
        credentials = [one.value.encode() for one in (keyless, stranger, narrow)]
        tokens = [one.token.encode() for one in (keyless, stranger, narrow)]
        yield Stage(keyless, words, credentials, tokens)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_request(stage: Stage, impatient: Proxy, name: str) -> None:
    attack, keyless = ATTACKS[name], stage.keyless
    keyless.upstream.forget()
    keyless.proxied.faults()

    with (impatient if attack.hurried else keyless.proxy).connect() as wire:
        if attack.inside:
            wire.say(
                _fill_in(stage, "CONNECT localhost:UP HTTP/1.1\r\nProxy-Authorization: Bearer TOKEN\r\nHost: a\r\n\r\n")
            )
            assert wire.hear(head_only=True).status == 200
            wire.into_tunnel(keyless.proxied.trust(), "localhost")
        wire.say(_fill_in(stage, attack.raw))
        if "zeros" in attack.raw:
            assert len(wire.hear_bytes(2**20)) == 2**20
        else:
            answer = wire.hear()
            if attack.wanted == PASSED:
                assert answer is not None
                assert (answer.whole, answer.status in (200, 302)) == (True, True), answer
            elif attack.wanted == CUT:
                assert answer is None or not answer.whole
            else:
                assert refusal(answer) == attack.wanted
            if attack.raw.endswith(SMUGGLED):
                assert wire.closed
        said = bytes(wire.heard)

    # An upstream may hear of an attack that was given up when the next one is under way.
    late = [other.raw.split(CRLF)[0] for other in ATTACKS.values() if other.reaches is None and other is not attack]
    heard = [one for one in keyless.upstream.requests() if not any(f"{one.target} " in line for line in late)]
    assert [credential for credential in stage.credentials if credential in said] == []
    assert [token for token in stage.tokens if token in keyless.upstream.raw()] == []
    # That a connection of an earlier test ends now is nothing that arrives.
    arrived = [line for line in keyless.upstream.lines("") if line["kind"] != "closed"]
    assert [line for line in arrived if line["server"] == "wrong"] == []
    assert [one.target for one in heard if "smuggled" in one.target or "njected" in str(one.headers)] == []
    assert [one.server for one in heard] in [
        ["main"] * count for count in (0, 1) if attack.reaches in (None, bool(count))
    ]
    if attack.wanted == MALFORMED:
        # Where its end was not clear nothing arrived that looks whole.
        assert keyless.upstream.lines("body") == []
    assert keyless.proxied.faults() == []


def test_the_wrong_upstream_could_be_reached(stage: Stage) -> None:
    with new_keyless(stage.keyless.proxied) as stranger:
        stranger.route("wrong")
        stage.keyless.upstream.forget()
        assert stranger.gateway("wrong").get("/echo").status_code == 200

    assert [one.server for one in stage.keyless.upstream.requests()] == ["wrong"]


def _fill_in(stage: Stage, raw: str) -> bytes:
    # In one pass: a token is random letters, and one in fifteen has an UP of its own that must stay.
    words = "|".join(sorted(stage.words, key=len, reverse=True))
    return re.sub(words, lambda found: stage.words[found[0]], raw).encode()


def _words(keyless: Keyless, stranger: Keyless, narrow: Keyless) -> dict[str, str]:
    header, claims, signature = keyless.token.split(".")
    said = msgspec.json.decode(_bytes_of(header))
    public = _public_key(keyless)
    key = Ed25519PrivateKey.generate()
    own = {"kty": "OKP", "crv": "Ed25519", "x": _text(key.public_key().public_bytes_raw())}
    changed = msgspec.json.decode(_bytes_of(claims)) | {"tid": stranger.tenant.id, "sub": stranger.agent.id}
    hs256 = f"{_json({**said, 'alg': 'HS256'})}.{claims}"
    none = f"{_json({**said, 'alg': 'none'})}.{claims}."

    def sign(header: dict[str, object]) -> str:
        text = f"{_json(header)}.{claims}"
        return f"{text}.{_text(key.sign(text.encode()))}"

    return {
        "UP": str(keyless.upstream.port),
        "WRONG": str(keyless.upstream.ports["wrong"]),
        "TOKEN": keyless.token,
        "FOREIGN": _routeless(keyless, stranger),
        "SCOPED": narrow.token,
        "EXPIRED": _expired_token(keyless),
        "TENANT_KEY": keyless.tenant.key,
        "BASIC": base64.b64encode(f"agent:{keyless.token}".encode()).decode(),
        "ALG_NONE": none,
        "ALG_NONE_SIGNED": none + signature,
        "HS256": f"{hs256}.{_text(hmac.digest(public, hs256.encode(), hashlib.sha256))}",
        "OTHER_KEY": sign(said),
        "OTHER_KID": sign({**said, "kid": secrets.token_hex(8)}),
        "NO_KID": sign({"alg": "EdDSA"}),
        "OWN_JWK": sign({**said, "jwk": own}),
        "CHANGED": f"{header}.{_json(changed)}.{signature}",
        "TRUNCATED": keyless.token[:-4],
    }


def _routeless(keyless: Keyless, stranger: Keyless) -> str:
    assert stranger.tenant.id != keyless.tenant.id
    return stranger.token


def _expired_token(keyless: Keyless) -> str:
    token: str = keyless.tenant.ok("POST", f"/agents/{keyless.agent.id}/token", {"expiresIn": "1s"})["token"]
    client = keyless.gateway(Authorization=f"Bearer {token}")
    assert eventually(lambda: client.get("/echo").status_code, 401, 5) == 401
    return token


def _public_key(keyless: Keyless) -> bytes:
    keys = keyless.tenant.get("/.well-known/jwks.json").json()["keys"]
    return _bytes_of(keys[0]["x"])


def _json(content: object) -> str:
    return _text(msgspec.json.encode(content))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
