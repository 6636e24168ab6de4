"""Long bodies pass on as they come, and nothing of them stays in memory."""

import hashlib
import uuid
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.fixtures.eventually import PATIENCE_SECONDS, eventually
from tests.fixtures.proxied import Keyless
from tests.fixtures.wire import Wire
from tests.outside.loopback import HELD_BYTES
from tests.proxy.envelope import refusal

MIB = 2**20
CLIENTS = ("gateway", "forward")


@pytest.mark.parametrize("form", CLIENTS)
def test_events_arrive_one_by_one(with_route: Keyless, form: str) -> None:
    gate = uuid.uuid4().hex
    client: httpx.Client = getattr(with_route, form)()
    heard = []
    with client.stream("GET", f"/sse?n=4&gate={gate}") as answer:
        for line in answer.iter_lines():
            if line:
                heard.append(line)
                # The upstream sends the next one only now, so a reader that waits for more hears nothing.
                with_route.upstream.release(gate)

    assert heard == [f"data: {number}" for number in range(4)]


def megabytes(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield bytes((number,)) * MIB


@pytest.mark.parametrize("chunked", [True, False])
def test_forty_megabytes_go_up(with_route: Keyless, chunked: bool) -> None:
    digest = hashlib.sha256(b"".join(megabytes(40))).hexdigest()
    content = megabytes(40) if chunked else b"".join(megabytes(40))

    answer = with_route.gateway().post("/count", content=content)

    assert answer.json() == {"size": 40 * MIB, "sha256": digest}


def test_a_longer_body_is_refused_by_its_length_before_it_is_sent(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/count", "POST", f"Content-Length: {512 * MIB + 1}"))

        assert refusal(wire.hear()) == (413, "body_too_large")
    assert with_route.upstream.requests() == []


def test_a_longer_chunked_body_is_refused_when_it_gets_too_long(with_route: Keyless) -> None:
    with with_route.proxied.another_proxy(SERVICE_PROXY_MAX_BODY_BYTES=str(4 * MIB)) as proxy, proxy.connect() as wire:
        wire.say(with_route.head("/up/count", "POST", "Transfer-Encoding: chunked"))
        for piece in megabytes(5):
            wire.say(b"%x\r\n" % len(piece), piece, b"\r\n")

        assert refusal(wire.hear()) == (413, "body_too_large")
        assert wire.closed
    assert with_route.upstream.lines("body") == []


def test_a_body_goes_up_while_it_comes(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/count", "POST", "Content-Length: 8"), b"half")

        eventually(with_route.upstream.requests)
        assert msgspec.json.decode(wire.say(b"more").hear().body)["size"] == 8


CRUMBS = 20_000


def test_a_body_in_crumbs_goes_up_whole_and_joined(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/pieces", "POST", "Transfer-Encoding: chunked"))
        found = msgspec.json.decode(wire.say(b"1\r\na\r\n" * CRUMBS + b"0\r\n\r\n").hear().body)

    assert found["size"] == CRUMBS
    assert found["pieces"] < CRUMBS // 10


@pytest.mark.parametrize("end", [b"-1\r\n", b"1\r\nab", b"x"])
def test_crumbs_that_break_off_go_up_without_an_end(with_route: Keyless, end: bytes) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(
            with_route.head("/up/pieces", "POST", "Transfer-Encoding: chunked"), b"1\r\na\r\n" * 100 + end + b"\r\n"
        )
        assert refusal(wire.hear()) == (400, "malformed_request")

    assert with_route.upstream.lines("body") == []


def test_an_answer_in_crumbs_comes_down_whole_and_joined(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        found = wire.say(with_route.head(f"/up/crumbs?n={CRUMBS}")).hear()

        assert (found.body, found.whole) == (b"a" * CRUMBS, True)
        assert len(wire.heard) < 2 * CRUMBS


@pytest.mark.parametrize(
    ("path", "body"), [("/up/trailers", b"body"), ("/up/until-close", b"all there is"), ("/up/crumbs?n=3", b"aaa")]
)
def test_an_agent_of_http_1_0_gets_no_chunks_and_the_end_of_its_connection(
    with_route: Keyless, path: str, body: bytes
) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head(path).replace(b"HTTP/1.1", b"HTTP/1.0")).hear()

        assert (answer.status, answer.body) == (200, body)
        assert answer.all("transfer-encoding") == []
        assert answer.all("connection") == ["close"]
        assert wire.closed


@pytest.mark.parametrize("path", ["/up/short-chunks", "/up/bad-chunks"])
def test_an_answer_that_breaks_off_is_no_proper_end_for_http_1_0(with_route: Keyless, path: str) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head(path).replace(b"HTTP/1.1", b"HTTP/1.0"))
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: wire.socket.recv(65536), b""))


def test_memory_stays_bounded_while_much_comes_down(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        before = with_route.proxy.resident()
        wire.say(with_route.head(f"/up/zeros?size={200 * MIB}"))
        assert wire.hear(head_only=True).status == 200
        most = before
        for _ in range(200):
            assert len(wire.hear_bytes(MIB)) == MIB
            wire.forget()
            most = max(most, with_route.proxy.resident())

    assert most - before < 32 * MIB


def test_memory_stays_bounded_when_the_agent_does_not_take_what_comes(with_route: Keyless) -> None:
    name = uuid.uuid4().hex
    before = with_route.proxy.resident()
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head(f"/up/zeros?size={1000 * MIB}&name={name}"))
        seen = [0]

        def stands_still() -> bool:
            seen.append(with_route.upstream.count_sent(name))
            return seen[-1] > 0 and len(seen) > 20 and seen[-20] == seen[-1]

        eventually(stands_still)

        assert seen[-1] < 2 * HELD_BYTES
        assert with_route.proxy.resident() - before < 32 * MIB


def push(wire: Wire, count: int) -> int:
    """Send so many MiB as far as they are taken within a second each."""
    wire.socket.settimeout(1)
    sent, piece = 0, bytes(MIB)
    try:
        while sent < count * MIB:
            wire.socket.sendall(piece)
            sent += MIB
    except OSError:
        pass
    wire.socket.settimeout(20)
    return sent


def test_memory_stays_bounded_while_a_refused_body_is_pushed(keyless: Keyless) -> None:
    before = keyless.proxy.resident()
    with keyless.proxy.connect() as wire:
        wire.say(f"POST /up/count HTTP/1.1\r\nHost: a\r\nContent-Length: {200 * MIB}\r\n\r\n".encode())
        sent = push(wire, 200)

        assert sent < HELD_BYTES
        assert keyless.proxy.resident() - before < 16 * MIB


def test_memory_stays_bounded_when_the_upstream_does_not_take_what_goes(with_route: Keyless) -> None:
    gate, before = uuid.uuid4().hex, with_route.proxy.resident()
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head(f"/up/deaf?gate={gate}", "POST", f"Content-Length: {4 * HELD_BYTES}"))
        sent = push(wire, 4 * HELD_BYTES // MIB)

        assert with_route.proxy.resident() - before < 16 * MIB
        assert sent < 2 * HELD_BYTES
    with_route.upstream.release(gate)


def test_descriptors_come_back(with_route: Keyless) -> None:
    before = with_route.proxy.descriptors()
    for path in ("/up/stall", "/up/stall?after=body", "/up/zeros?size=99999999", "/up/echo"):
        for _ in range(3):
            with_route.upstream.forget()
            with with_route.proxy.connect() as wire:
                wire.say(with_route.head(path))
                eventually(with_route.upstream.requests)

    eventually(with_route.proxy.descriptors, lambda count: count <= before)


@pytest.mark.parametrize("form", CLIENTS)
def test_a_websocket_carries_both_ways(with_route: Keyless, form: str) -> None:
    if form == "gateway":
        address = f"{with_route.proxy.url.replace('http', 'ws')}/up/ws"
        opening = connect(
            address,
            additional_headers={"Authorization": f"Bearer {with_route.token}"},
            proxy=None,
            open_timeout=PATIENCE_SECONDS,
        )
    else:
        address = f"wss://localhost:{with_route.upstream.port}/ws"
        opening = connect(
            address, ssl=with_route.proxied.trust(), proxy=with_route.proxy_url(), open_timeout=PATIENCE_SECONDS
        )
    with opening as socket:
        for message in ("hello", "\u00e9" * 300, "x" * 100_000):
            socket.send(message)
            assert socket.recv(PATIENCE_SECONDS) == message
        socket.send(b"\x00\xff")
        assert socket.recv(PATIENCE_SECONDS) == b"\x00\xff"
        socket.ping().wait(PATIENCE_SECONDS)

    heard = with_route.upstream.requests()[0]
    assert heard.all("authorization") == [f"Bearer {with_route.value}"]
    assert heard.all("sec-websocket-extensions") == []


def test_a_frame_that_claims_to_be_compressed_ends_the_websocket(with_route: Keyless) -> None:
    address = f"{with_route.proxy.url.replace('http', 'ws')}/up/ws?bad=1"
    opening = connect(
        address,
        additional_headers={"Authorization": f"Bearer {with_route.token}"},
        proxy=None,
        open_timeout=PATIENCE_SECONDS,
    )
    with opening as socket, pytest.raises(ConnectionClosed):
        socket.recv(PATIENCE_SECONDS)
