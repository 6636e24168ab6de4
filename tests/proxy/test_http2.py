"""HTTP/2 from agents in a tunnel, and to upstreams that speak nothing else: the same promises, stream by stream."""

import contextlib
import signal
import uuid
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import msgspec
import pytest
from hyperframe.frame import (
    ContinuationFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.fixtures.eventually import eventually
from tests.fixtures.http2_wire import GRPC, Heard, Http2Wire
from tests.fixtures.proxied import Keyless, Proxy, new_keyless
from tests.fixtures.server import STOP_SECONDS
from tests.outside.http2_server import message
from tests.outside.loopback import HELD_BYTES
from tests.proxy.envelope import refusal
from tests.proxy.written import rows

CALM, CANCEL, REFUSED_STREAM, INTERNAL = 11, 8, 7, 2
GRPC_HEADERS = {name.replace("-", "_"): value for name, value in GRPC.items()}


def only_http2(keyless: Keyless, server: str = "main", *, both: bool = False) -> httpx.Client:
    """A client in a tunnel that speaks nothing else, or prefers it."""
    return keyless._keep(
        http2=True,
        http1=both,
        verify=keyless.proxied.trust(),
        proxy=keyless.proxy_url(),
        base_url=f"https://localhost:{keyless.upstream.ports[server]}",
    )


def code_of(heard: Heard) -> str | None:
    """The code of a refusal, in our envelope."""
    said = msgspec.json.decode(heard.body)
    assert said["data"]["code"] == heard.one("x-service-error")
    return heard.one("x-service-error")


# ---------------------------------------------------------------- agents


def test_a_client_that_speaks_nothing_else_gets_the_credential_put_in(with_route: Keyless) -> None:
    client = only_http2(with_route)
    answers = [client.get("/v1/models?a=1"), client.post("/echo", json={"a": 1})]
    answers.append(client.post("/count", content=bytes(3_000_000)))

    assert [(answer.status_code, answer.http_version) for answer in answers] == [(200, "HTTP/2")] * 3
    assert answers[2].json()["size"] == 3_000_000
    first, second, _ = with_route.upstream.requests()
    assert (first.target, second.body) == ("/v1/models?a=1", '{"a":1}')
    assert first.all("authorization") == [f"Bearer {with_route.value}"]
    # One after the other they share a connection to the upstream.
    assert with_route.upstream.connections() == 1
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_a_client_that_speaks_both_keeps_to_http1(with_route: Keyless) -> None:
    assert only_http2(with_route, both=True).get("/echo").http_version == "HTTP/1.1"


def test_a_tunnel_without_tls_takes_it_too(with_route: Keyless) -> None:
    with Http2Wire(with_route, clear=True) as wire:
        heard = wire.ask("/echo")
        assert wire.until(heard)

    assert heard.one(":status") == "200"


def test_many_streams_at_once_end_each_with_its_own_answer(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        asked = [wire.ask(f"/echo?n={number}") for number in range(40)]
        assert wire.until(lambda: all(one.over for one in asked))

    targets = [msgspec.json.decode(one.body)["target"] for one in asked]
    assert targets == [f"/echo?n={number}" for number in range(40)]


def test_an_answer_is_masked_in_every_part(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = wire.ask("/reflect")
        assert wire.until(heard)

    assert heard.one(":status") == "200"
    assert with_route.value not in str(heard)
    assert "***" in str(heard)


def test_a_refusal_has_the_envelope(keyless: Keyless) -> None:
    keyless.route(pathPattern="/v1/*")
    assert refusal(only_http2(keyless).get("/v2/models")) == (403, "no_route")


async def test_a_stream_leaves_its_own_audit_row(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = [wire.ask("/echo"), wire.ask("/echo")]
        assert wire.until(lambda: all(one.over for one in heard))
    found = [row["metadata"] for row in await rows(with_route, 3) if row["metadata"]["form"] != "connect"]

    assert [(one["form"], one["path"], one["status"], one["injected"]) for one in found] == [
        ("tunnel", "/echo", 200, True)
    ] * 2


def test_another_agents_token_goes_nowhere(with_route: Keyless) -> None:
    with new_keyless(with_route.proxied) as other, Http2Wire(with_route) as wire:
        heard = wire.ask("/echo", authorization=f"Bearer {other.token}")
        assert wire.until(heard)

    assert code_of(heard) == "two_tokens"
    assert with_route.upstream.requests() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"x": "a\r\nauthorization: b"},
        {"x": "a\0b"},
        {"transfer_encoding": "chunked"},
        {"connection": "authorization"},
        {"upgrade": "websocket"},
        {"content_length": "5"},
        {"content_length": "a"},
        {":path": "/a b"},
        {":path": "/a HTTP/1.1\r\nHost: b"},
        {":protocol": "websocket"},
        {"X-Upper": "a"},
        {"a b": "c"},
        {"": "c"},
    ],
    ids=str,
)
def test_a_field_never_becomes_a_second_line(with_route: Keyless, fields: dict[str, str]) -> None:
    with Http2Wire(with_route) as wire:
        stream = wire.h2.get_next_available_stream_id()
        head = {":method": "POST", ":scheme": "https", ":authority": wire.authority, ":path": "/echo"}
        given = {**head, **{name.replace("_", "-"): value for name, value in fields.items()}}
        wire.streams[stream] = heard = Heard()
        wire.h2.send_headers(stream, list(given.items()))
        wire.h2.send_data(stream, b"abc", end_stream=True)
        wire.flush()
        wire.until(heard)

    assert heard.reset is not None or wire.goodbye is not None or heard.one(":status") == "400"
    assert with_route.upstream.requests() == []


def test_a_request_that_is_told_in_frames_of_one_byte_is_the_same(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = wire.ask("/count", "POST", None)
        for _ in range(50):
            wire.h2.send_data(wire.number(heard), b"a")
        wire.h2.end_stream(wire.number(heard))
        for byte in wire.h2.data_to_send():
            wire.wire.say(bytes([byte]))
        assert wire.until(heard)

    assert msgspec.json.decode(heard.body)["size"] == 50


def test_the_streams_of_an_agent_count_as_its_connections(with_route: Keyless) -> None:
    gate = uuid.uuid4().hex
    wires = [Http2Wire(with_route) for _ in range(3)]
    asked = [(wire, wire.ask(f"/deaf?gate={gate}")) for wire in wires for _ in range(100)]
    told = [(wire, heard) for wire, heard in asked if wire.until(lambda heard=heard: heard.head, seconds=0.02)]
    eventually(lambda: _count(wires, asked) >= 300 - 253)
    with new_keyless(with_route.proxied) as other:
        other.route()
        assert other.gateway().get("/echo").status_code == 200
    for wire in wires:
        wire.wire.socket.close()

    assert told is not None
    codes = {code_of(heard) for _, heard in asked if heard.over and heard.body}
    assert codes == {"too_many_connections"}


def _count(wires: list[Http2Wire], asked: list[tuple[Http2Wire, Heard]]) -> int:
    for wire in wires:
        wire.until(seconds=0.05)
    return sum(heard.one(":status") == "429" for _, heard in asked)


def test_a_stream_that_is_given_up_ends_at_the_upstream_and_no_other_does(with_route: Keyless) -> None:
    gate = uuid.uuid4().hex
    with Http2Wire(with_route) as wire:
        kept, given_up = wire.ask(f"/sse?n=2&gate={gate}"), wire.ask(f"/zeros?size={10**10}")
        assert wire.until(lambda: kept.body and given_up.body)
        wire.h2.reset_stream(wire.number(given_up))
        wire.flush()
        gone = next(one.connection for one in with_route.upstream.requests() if gate not in one.target)
        eventually(lambda: gone in [line["connection"] for line in with_route.upstream.lines("closed")])
        with_route.upstream.release(gate)
        assert wire.until(kept)

    assert kept.ended
    assert kept.body == b"data: 0\n\ndata: 1\n\n"


def test_a_stream_ends_when_its_agent_is_frozen(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = wire.ask(f"/sse?n=2&gate={uuid.uuid4().hex}")
        assert wire.until(lambda: heard.body)
        with_route.tenant.ok("POST", f"/agents/{with_route.agent.id}/freeze", {})
        assert wire.until(heard)
        after = wire.ask("/echo")
        assert wire.until(after)

    assert (heard.ended, heard.reset) == (False, INTERNAL)
    assert code_of(after) == "frozen"


@pytest.mark.long
def test_a_stream_ends_complete_while_the_proxy_stops(with_route: Keyless) -> None:
    gate = uuid.uuid4().hex
    with with_route.proxied.another_proxy() as proxy, ExitStack() as stack:
        wire, idle, late = (stack.enter_context(Http2Wire(with_route, proxy=proxy)) for _ in range(3))
        before, heard, other = idle.ask("/echo"), wire.ask(f"/sse?n=2&gate={gate}"), late.ask("/deaf?gate=never")
        assert idle.until(before)
        assert wire.until(lambda: heard.body)
        proxy.process.send_signal(signal.SIGTERM)
        idle.until()
        late.ask("/echo")
        said = late.wire.socket.recv(65536)
        while bytes((0, 0, 8, 7)) not in said:
            said += late.wire.socket.recv(65536)
        with_route.upstream.release(gate)
        assert wire.until(heard)
        wire.until()
        assert proxy.process.wait(STOP_SECONDS) == 0

    assert (idle.goodbye, wire.goodbye) == ((0, b""), (0, b""))
    assert (heard.ended, heard.body, other.over) == (True, b"data: 0\n\ndata: 1\n\n", False)
    assert bytes((0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, REFUSED_STREAM)) in said


def test_an_early_answer_to_an_upload_arrives(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = wire.ask("/too-large", "POST", None)
        assert wire.until(heard)
        after = wire.ask("/echo")
        assert wire.until(after)

    assert (heard.one(":status"), heard.body) == ("413", b"13 bytes long")
    assert after.one(":status") == "200"


def test_an_answer_that_breaks_off_does_not_look_whole(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        broken = [wire.ask("/short"), wire.ask("/bad-chunks")]
        whole = wire.ask("/until-close")
        assert wire.until(lambda: all(one.over for one in (*broken, whole)))

    assert [one.ended for one in broken] == [False, False]
    assert (whole.ended, whole.body) == (True, b"all there is")


# ---------------------------------------------------------------- bounds


def test_a_reader_that_takes_nothing_makes_the_upstream_wait(with_route: Keyless) -> None:
    name = uuid.uuid4().hex
    with Http2Wire(with_route, window=0) as wire:
        heard = [wire.ask(f"/zeros?size={4 * HELD_BYTES}&name={name}") for _ in range(4)]
        assert wire.until(lambda: all(one.head for one in heard))
        # Others are answered meanwhile; what the kernels take of these, and no more, has gone out.
        for _ in range(20):
            other = wire.ask("/status")
            assert wire.until(other)
        sent = with_route.upstream.count_sent(name)

    assert sent < 4 * HELD_BYTES
    assert other.one(":status") == "200"


def test_an_answer_that_is_never_taken_is_let_go_of_and_so_is_its_tunnel(with_route: Keyless, impatient: Proxy) -> None:
    with Http2Wire(with_route, proxy=impatient, window=0) as wire:
        heard = wire.ask("/zeros?size=1000")

        assert wire.until(heard)
        wire.until()

    assert (heard.one(":status"), heard.body, heard.ended, heard.reset) == ("200", b"", False, CANCEL)
    assert wire.wire.ended


def test_an_upload_that_the_upstream_does_not_take_waits_with_its_agent(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        stuck = wire.ask("/deaf?gate=never", "POST", None)
        number, sent = wire.number(stuck), 0
        while wire.h2.local_flow_control_window(number) or wire.until(
            lambda: wire.h2.local_flow_control_window(number), seconds=1
        ):
            room = min(wire.h2.local_flow_control_window(number), 16_384)
            wire.h2.send_data(number, bytes(room))
            wire.flush()
            sent += room
            assert sent < 2 * HELD_BYTES
        other = wire.ask("/count", "POST", bytes(1000))
        assert wire.until(other)

    assert other.one(":status") == "200"


def reset(wire: Http2Wire) -> None:
    for _ in range(50):
        heard = wire.ask("/echo")
        wire.h2.reset_stream(wire.number(heard))
    wire.flush()


def frames(frame: bytes) -> Callable[[Http2Wire], None]:
    return lambda wire: wire.wire.say(frame * 500) and None


FLOODS: dict[str, Callable[[Http2Wire], None]] = {
    "streams that are given up": reset,
    "pings": frames(PingFrame(0, opaque_data=bytes(8)).serialize()),
    "settings": frames(SettingsFrame(0, settings={3: 100}).serialize()),
    "windows": frames(WindowUpdateFrame(0, window_increment=1).serialize()),
    "priorities": frames(PriorityFrame(5, stream_weight=3).serialize()),
    "frames that nobody knows": frames(b"\0\0\0\xfa\0\0\0\0\0"),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_frames_that_nobody_means_end_the_connection(with_route: Keyless, flood: Callable[[Http2Wire], None]) -> None:
    with Http2Wire(with_route) as wire, new_keyless(with_route.proxied) as other:
        other.route()
        for _ in range(40):
            flood(wire)
            assert other.gateway().get("/echo").status_code == 200
            if wire.until(lambda: wire.goodbye, seconds=0.01) or wire.wire.ended:
                break
        wire.until(lambda: wire.goodbye)

    assert wire.goodbye is not None
    assert wire.goodbye[0] == CALM


def continuation(wire: Http2Wire) -> bytes:
    first, more = HeadersFrame(1, data=b"\x82"), ContinuationFrame(1, data=b"\0\1a\1b" * 10)
    return first.serialize() + more.serialize() * 1000


def bomb(wire: Http2Wire) -> bytes:
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/"), ("x", "a" * 4000)]
    block = wire.h2.encoder.encode(fields) + b"\xbe" * 12_000
    return HeadersFrame(1, data=block, flags=["END_HEADERS", "END_STREAM"]).serialize()


@pytest.mark.parametrize("head", [continuation, bomb])
def test_a_head_without_end_ends_the_connection(with_route: Keyless, head: Callable[[Http2Wire], bytes]) -> None:
    with Http2Wire(with_route) as wire:
        wire.wire.say(head(wire))
        wire.until(lambda: wire.goodbye)

    assert wire.goodbye is not None
    assert wire.goodbye[0] == CALM
    assert with_route.upstream.requests() == []


def test_a_head_of_too_many_lines_is_refused_by_its_stream_alone(with_route: Keyless) -> None:
    with Http2Wire(with_route) as wire:
        heard = wire.ask("/echo", **{f"x-{number}": "a" for number in range(300)})
        other = wire.ask("/echo")
        assert wire.until(lambda: heard.over and other.over)

    assert (heard.one(":status"), code_of(heard)) == ("431", "head_too_large")
    assert other.one(":status") == "200"


# ---------------------------------------------------------------- without a tunnel


def test_the_port_itself_says_where_http2_is_spoken(keyless: Keyless) -> None:
    with keyless.proxy.connect() as wire:
        said = wire.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0").hear_all()

    assert said[:9] == b"\0\0\0\4\0\0\0\0\0"
    kind, last, code, envelope = said[12], said[18:22], said[22:26], said[26:]
    assert (kind, last, code) == (7, bytes(4), b"\0\0\0\x0d")
    told = msgspec.json.decode(envelope)
    assert told["data"]["code"] == "malformed_request"
    assert "HTTPS_PROXY" in told["error"]["message"]


# ---------------------------------------------------------------- gRPC


def test_a_call_by_grpc_gets_its_answer_and_its_trailers_masked(keyless: Keyless) -> None:
    keyless.route("http2")
    with Http2Wire(keyless, "http2") as wire:
        heard = wire.ask("/call", "POST", b"\0\0\0\0\0", **GRPC_HEADERS, grpc_accept_encoding="gzip")
        assert wire.until(heard)
        (asked,) = keyless.upstream.requests()

    assert (heard.one(":status"), heard.one("grpc-status")) == ("200", "0")
    assert heard.body[5:].startswith(b"said Bearer ***")
    assert int.from_bytes(heard.body[1:5]) == len(heard.body) - 5
    assert str(heard.one("grpc-message")).startswith("Bearer ***")
    assert keyless.value not in str(heard)
    assert [name for name, _ in heard.trailers] == ["grpc-status", "grpc-message"]
    assert asked.all("authorization") == [f"Bearer {keyless.value}"]
    assert (asked.all("te"), asked.all("grpc-accept-encoding")) == (["trailers"], ["identity"])
    assert keyless.token.encode() not in keyless.upstream.raw()


def test_both_sides_of_a_call_talk_at_the_same_time(keyless: Keyless) -> None:
    keyless.route("http2")
    with Http2Wire(keyless, "http2") as wire:
        heard = wire.ask("/talk", "POST", None, **GRPC_HEADERS)
        # What a message ends with may be how the credential begins.
        for number in range(3):
            wire.h2.send_data(wire.number(heard), message(b"%d sk-c" % number))
            wire.flush()
            assert wire.until(lambda number=number: heard.body.endswith(b"%d sk-c" % number))
        wire.h2.end_stream(wire.number(heard))
        wire.flush()
        assert wire.until(heard)

    assert (heard.body, heard.one("grpc-status")) == (
        b"".join(message(b"%d sk-c" % number) for number in range(3)),
        "0",
    )


def test_an_answer_that_is_trailers_alone_is_masked_too(keyless: Keyless) -> None:
    keyless.route("http2")
    with Http2Wire(keyless, "http2") as wire:
        heard = wire.ask("/refused", "POST", b"\0\0\0\0\0", **GRPC_HEADERS)
        assert wire.until(heard)

    assert (heard.ended, heard.body, heard.one("grpc-status")) == (True, b"", "5")
    assert str(heard.one("grpc-message")).startswith("no Bearer ***")


def test_a_refusal_of_a_call_is_told_as_grpc_tells_it(keyless: Keyless) -> None:
    keyless.route("http2", pathPattern="/other/*")
    keyless.route("main")
    with Http2Wire(keyless, "http2") as wire, Http2Wire(keyless) as old:
        no_route = wire.ask("/call", "POST", b"\0\0\0\0\0", **GRPC_HEADERS)
        no_http2 = old.ask("/call", "POST", b"\0\0\0\0\0", **GRPC_HEADERS)
        assert wire.until(no_route)
        assert old.until(no_http2)

    found = [(one.one(":status"), one.one("grpc-status"), one.one("x-service-error")) for one in (no_route, no_http2)]
    assert found == [("200", "7", "no_route"), ("200", "14", "upstream_failed")]
    assert "gRPC" in str(no_http2.one("grpc-message"))
    assert keyless.upstream.requests() == []


def test_messages_that_cannot_be_checked_do_not_pass(keyless: Keyless) -> None:
    keyless.route("http2")
    with Http2Wire(keyless, "http2") as wire:
        heard = wire.ask("/compressed", "POST", b"\0\0\0\0\0", **GRPC_HEADERS)
        assert wire.until(heard)

        flagged = wire.ask("/flagged", "POST", b"\0\0\0\0\0", **GRPC_HEADERS)
        assert wire.until(flagged)

    assert (heard.one("grpc-status"), heard.one("x-service-error"), heard.body) == ("14", "upstream_encoded", b"")
    assert (flagged.ended, flagged.body) == (False, b"")


def test_a_message_of_whom_nobody_called_ends_in_no_part_of_a_credential(with_route: Keyless) -> None:
    value = with_route.value.encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nContent-Length: %d\r\n\r\n" % (5 + len(value))
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.pour(head, message(value)[:4] + bytes((len(value) - 1,)) + value, times=1)).hear()

    assert answer is not None
    assert answer.body[5:] == b"*" * len(value)


# ---------------------------------------------------------------- upstreams that speak nothing else


def test_an_upstream_that_speaks_nothing_else_is_reached_by_any_client(keyless: Keyless) -> None:
    keyless.route("http2")
    answers = [
        keyless.gateway("http2").get("/echo"),
        keyless.gateway("http2").post("/echo", json={"a": 1}),
        keyless.gateway("http2").post("/echo", content=iter([bytes(60_000)] * 20)),
        only_http2(keyless, "http2").post("/echo", content=bytes(1000)),
        keyless.gateway("http2").get(f"/zeros?n={3 * 2**20}"),
    ]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert [answer.json()["size"] for answer in answers[:4]] == [0, 7, 1_200_000, 1000]
    assert len(answers[4].content) == 3 * 2**20
    assert {heard.server for heard in keyless.upstream.requests()} == {"http2"}
    assert all(heard.all("authorization") == [f"Bearer {keyless.value}"] for heard in keyless.upstream.requests())


@pytest.mark.parametrize(
    "path",
    [
        "/interim",
        "/large-head",
        "/line-break",
        "/no-status",
        "/two-lengths",
        "/nothing-of-ten",
        "/reset",
        "/leave",
        "/garbage",
        "/flood/pings",
        "/flood/settings",
    ],
)
def test_a_broken_upstream_is_an_error_of_its_own(keyless: Keyless, path: str) -> None:
    keyless.route("http2")
    client = keyless.gateway("http2")
    assert client.get("/echo").status_code == 200

    assert refusal(client.get(path)) == (502, "upstream_failed")
    assert client.get("/echo").status_code == 200


@pytest.mark.parametrize("path", ["/half", "/four-of-ten", "/flood/empty-data"])
def test_an_answer_that_an_upstream_gives_up_does_not_look_whole(keyless: Keyless, path: str) -> None:
    keyless.route("http2")
    client = keyless.gateway("http2")
    assert client.get("/echo").status_code == 200
    with pytest.raises(httpx.TransportError):
        client.get(path)


def test_a_body_where_none_may_be_is_nobodys_next_answer(keyless: Keyless) -> None:
    keyless.route("http2")
    keyless.gateway("http2").get("/echo")
    with keyless.proxy.connect() as wire:
        wire.say(keyless.head("/http2/unbidden"))
        wire.socket.settimeout(10.0)
        came = b""
        with contextlib.suppress(ConnectionResetError):
            while data := wire.socket.recv(65536):
                came += data

    # The connection is reset, and that may overtake the head.
    assert came.partition(b" ")[0] in (b"", b"HTTP/1.1")
    assert b"forged" not in came


def test_an_upstream_that_leaves_after_its_answer_is_dialled_again(keyless: Keyless) -> None:
    keyless.route("http2")
    client = keyless.gateway("http2")
    client.get("/echo")
    assert [client.get("/leave-later").text, client.get("/leave-later").text] == ["last", "last"]


def test_an_upload_waits_for_room_in_the_upstreams_window(keyless: Keyless) -> None:
    keyless.route("http2")
    client = keyless.gateway("http2")
    client.get("/echo")
    with keyless.proxy.connect() as wire:
        head = keyless.head("/http2/deaf", "POST", f"Content-Length: {4 * HELD_BYTES}")
        wire.say(head)
        wire.socket.settimeout(1.0)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 4 * HELD_BYTES:
                sent += wire.socket.send(bytes(65536))

    assert sent < 2 * HELD_BYTES
