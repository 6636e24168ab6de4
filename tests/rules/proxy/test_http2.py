"""Frames within bounds, heads that cannot become two, answers and messages in any pieces."""

import itertools
import time

import h2.config
import h2.connection
import h2.settings
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_addon import grpc, http2
from proxy_addon.decode import BadCoding
from proxy_addon.mask import needles
from proxy_addon.mitm.http2 import MAX_TABLE, Encoder, new_connection
from tests.fixtures.each import each

HEAD = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/")]
FIELDS = st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=4)


def frame(kind: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags, 0, 0, 0, 1)) + payload


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[low:high] for low, high in itertools.pairwise(edges)]


def take_all(frames: http2.Frames, parts: list[bytes]) -> list[bytes]:
    found = []
    for part in parts:
        frames.give(part)
        more = True
        while more:
            data, more = frames.take()
            found.append(data)
    return found


@given(st.lists(st.binary(max_size=40), max_size=60), st.lists(st.integers(0, 10_000), max_size=8))
def test_frames_come_whole_and_none_is_lost(payloads: list[bytes], cuts: list[int]) -> None:
    said = http2.PREFACE + b"".join(frame(0, payload) for payload in payloads)
    found = take_all(http2.Frames(preface=True), pieces(said, cuts))

    assert b"".join(found) == said
    for data in found:
        rest = data.removeprefix(http2.PREFACE)
        while rest:
            rest = rest[9 + int.from_bytes(rest[:3]) :]
        assert data.count(frame(0)) <= http2.MAX_FRAMES_AT_ONCE


@each(
    "said",
    [
        b"GET / HTTP/1.1\r\n",
        http2.PREFACE + (http2.MAX_FRAME + 1).to_bytes(3) + bytes(6),
        http2.PREFACE + frame(5),
        http2.PREFACE + frame(1) + frame(9, b"a") * 100,
        http2.PREFACE + frame(1, bytes(16_000)) + frame(9, bytes(16_000)) * 5,
        http2.PREFACE + frame(6, bytes(8)) * (http2.MAX_HOLLOW + 1),
        http2.PREFACE + frame(0) * (http2.MAX_HOLLOW + 1),
        http2.PREFACE + frame(3, bytes(4)) * (http2.MAX_RESETS + 1),
    ],
    ids=["no HTTP/2", "a frame too long", "a push", "a head of many", "a long head", "pings", "empty data", "resets"],
)
def test_frames_that_nobody_means_are_refused(said: bytes) -> None:
    with pytest.raises(http2.BadFrames):
        take_all(http2.Frames(preface=True), [said])


def test_frames_that_answer_ours_do_not_count() -> None:
    frames = http2.Frames(preface=False)
    for _ in range(http2.MAX_HOLLOW):
        frames.note_answers(1)
        take_all(frames, [frame(8, bytes(4)) * 2])


@given(FIELDS, st.booleans())
def test_a_head_has_as_many_lines_as_fields(fields: list[tuple[bytes, bytes]], ended: bool) -> None:
    try:
        head, chunked, _ = http2.request_head([*HEAD, *fields], ended=ended)
    except http2.BadHead:
        return
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    assert len(lines) <= 2 + len(fields) + chunked


@each(
    "fields",
    [
        [(b":method", b"CONNECT"), (b":authority", b"a")],
        [*HEAD[:3], (b":path", b"a")],
        [*HEAD[:3], (b":path", b"/ HTTP/1.1\r\nA: b")],
        [*HEAD, (b":protocol", b"websocket")],
        [*HEAD[:2], (b":path", b"/")],
        [*HEAD, (b"a b", b"c")],
        [*HEAD, (b"a", b"c\r\nd: e")],
        [(b":method", b"get"), *HEAD[1:]],
    ],
    ids=str,
)
def test_a_head_that_http1_has_no_words_for_is_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(http2.BadHead):
        http2.request_head(fields, ended=True)


def test_crumbs_of_a_cookie_are_one_again() -> None:
    head, _, _ = http2.request_head([*HEAD, (b"cookie", b"a=1"), (b"b", b"c"), (b"cookie", b"d=2")], ended=True)

    assert head == b"GET / HTTP/1.1\r\nHost: a\r\nb: c\r\ncookie: a=1; d=2\r\n\r\n"


@given(st.lists(st.integers(0, 1000), max_size=8))
def test_an_answer_is_the_same_in_any_pieces(cuts: list[int]) -> None:
    said = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nA: b\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\nGrpc-Status: 0\r\n\r\n"
    )
    answer = http2.Answer(head_only=False)
    for piece in pieces(said, cuts):
        answer.feed(piece)

    assert (answer.interim, answer.status, answer.fields, bytes(answer.plain)) == ([100], 200, [(b"a", b"b")], b"abcde")
    assert (answer.ended, answer.last, answer.trailers) == (True, True, [(b"grpc-status", b"0")])


@each(
    ("head", "body", "ended"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"abc", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"ab", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"abc", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n", False),
    ],
)
def test_the_end_of_a_connection_ends_only_what_nothing_else_does(head: bytes, body: bytes, ended: bool) -> None:
    answer = http2.Answer(head_only=False)
    answer.feed(head + body)

    assert answer.end() is ended


def test_trailers_say_nothing_that_belongs_into_a_head() -> None:
    given_ = [(b"Grpc-Status", b"0"), (b"content-length", b"1"), (b"set-cookie", b"a"), (b"x-service-error", b"a")]

    assert http2.trailers_for_agent([*given_, (b"a", b"b\r\nc: d"), (b"a b", b"c")]) == [(b"grpc-status", b"0")]


@each(
    ("kind", "is_call"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"Application/GRPC;a=b", True),
        (b"application/grpc-web", False),
        (b"application/json", False),
    ],
)
def test_a_call_is_known_by_its_type(kind: bytes, is_call: bool) -> None:
    assert grpc.is_call([(b"Content-Type", kind)]) is is_call


MESSAGE = b"\0" + (12).to_bytes(4) + b"key: secret1"


@given(st.lists(st.integers(0, 1000), max_size=8))
def test_messages_are_masked_in_any_pieces_and_none_waits_for_the_next(cuts: list[int]) -> None:
    messages = grpc.Messages(needles("secret1"))
    shown = b"".join(messages.feed(piece) for piece in pieces(MESSAGE * 2, cuts))

    assert shown == (MESSAGE[:5] + b"key: *******") * 2
    assert messages.end() == b""


def test_a_compressed_message_is_not_read() -> None:
    with pytest.raises(BadCoding):
        grpc.Messages(needles("secret1")).feed(b"\1" + bytes(4))


@each(
    ("status", "method", "lengths", "size"),
    [
        (200, b"GET", [], None),
        (200, b"GET", [b"10"], 10),
        (200, b"HEAD", [b"10"], 0),
        (204, b"GET", [], 0),
        (304, b"GET", [b"10"], 0),
    ],
)
def test_a_head_says_how_long_the_body_is(status: int, method: bytes, lengths: list[bytes], size: int | None) -> None:
    fields = [(b"content-length", length) for length in lengths]
    assert http2.body_size(status, fields, method=method) == size


@each("lengths", [[b"1", b"2"], [b"1", b"1"], [b"+1"], [b"1_0"], [b""], [b"\xb2"]])
def test_a_length_that_is_none_is_refused(lengths: list[bytes]) -> None:
    with pytest.raises(http2.BadHead):
        http2.body_size(200, [(b"content-length", length) for length in lengths], method=b"GET")


@given(st.lists(st.one_of(st.integers(0, 2**32 - 1), st.binary(max_size=40)), max_size=30))
def test_heads_are_read_whatever_table_the_other_side_wishes(steps: list[int | bytes]) -> None:
    proxy, client = (
        new_connection(client=False),
        h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=False)),
    )
    for connection in (proxy, client):
        connection.initiate_connection()
    for step in steps:
        if isinstance(step, int):
            client.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: step})
            proxy.receive_data(client.data_to_send())
            client.receive_data(proxy.data_to_send())
            continue
        number = client.get_next_available_stream_id()
        client.send_headers(number, HEAD, end_stream=True)
        proxy.receive_data(client.data_to_send())
        fields = [(b":status", b"200"), (b"x-a", b"b" * 500), (b"x-b", step.hex().encode())]
        proxy.send_headers(number, fields, end_stream=True)
        (heard,) = [one for one in client.receive_data(proxy.data_to_send()) if hasattr(one, "headers")]
        assert heard.headers == fields
        assert proxy.encoder.header_table_size <= MAX_TABLE


def test_a_head_is_written_in_time_that_grows_with_it() -> None:
    encoder, value = Encoder(), b"Z|" * 30_000
    began = time.process_time()
    encoder.encode([(b"x", value)])

    # The library alone takes a hundred times as long.
    assert time.process_time() - began < 0.05
