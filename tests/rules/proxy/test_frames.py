"""Websocket frames: masked across fragments, passed on at once, and refused when they are none."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy_addon.frames import BadFrame, MaskedFrames
from proxy_addon.mask import Needles, mask_text
from tests.fixtures.each import each

SECRET = b"sk-12345"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(payload, opcode=TEXT, *, final=True):
    size = len(payload)
    if size < 126:
        length = bytes([size])
    elif size < 65536:
        length = bytes([126]) + size.to_bytes(2)
    else:
        length = bytes([127]) + size.to_bytes(8)
    return bytes([opcode | (0x80 if final else 0)]) + length + payload


def message(fragments, control=()):
    """One message in fragments, with control frames after the fragments that they are given for."""
    frames = b""
    for position, fragment in enumerate(fragments):
        frames += frame(fragment, CONTINUATION if position else TEXT, final=position == len(fragments) - 1)
        if position < len(fragments) - 1:
            frames += b"".join(frame(payload, opcode) for after, opcode, payload in control if after == position)
    return frames


def cut(text, cuts):
    marks = sorted({min(mark, len(text)) for mark in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(marks)]


def read(frames, data):
    """All that there is to read, go by go."""
    said = frames.feed(data)
    while frames.unread:
        said += frames.feed(b"")
    return said


def feed(data, *forms):
    return read(MaskedFrames(Needles.of(*(forms or (SECRET,)))), data)


@each("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_frame_of_any_length_passes_as_it_came(size):
    assert feed(frame(b"x" * size)) == frame(b"x" * size)


@each("opcode", [TEXT, BINARY])
def test_a_secret_in_a_message_is_masked(opcode):
    assert feed(frame(b'{"key":"sk-12345"}', opcode)) == frame(b'{"key":"********"}', opcode)


def test_a_message_is_given_out_when_it_ends_even_if_it_ends_like_a_secret():
    assert feed(frame(b"sk-1234")) == frame(b"sk-1234")
    assert feed(frame(b"sk-12") + frame(b"345")) == frame(b"sk-12") + frame(b"345")


def test_a_header_and_every_decided_byte_leave_at_once():
    frames = MaskedFrames(Needles.of(SECRET))

    assert frames.feed(b"\x81") == b""
    assert frames.feed(b"\x06") == b"\x81\x06"
    assert frames.feed(b"ab ") == b"ab "
    assert frames.feed(b"sk") == b""
    assert frames.feed(b"y") == b"sky"


def test_a_secret_across_fragments_is_masked_in_each():
    assert feed(message([b"a sk-1", b"23", b"45 b"])) == message([b"a ****", b"**", b"** b"])


def test_text_that_only_began_like_a_secret_stays_in_its_own_fragment():
    assert feed(message([b"a sk-1", b"", b"x"])) == message([b"a sk-1", b"", b"x"])


def test_the_header_behind_held_bytes_waits_for_them():
    frames = MaskedFrames(Needles.of(SECRET))
    first, second = frame(b"a sk-", final=False), frame(b"12345", CONTINUATION)

    assert frames.feed(first) == first[:-3]
    assert frames.feed(second[:2]) == b""
    assert frames.feed(second[2:6]) == b""
    assert frames.feed(second[6:]) == b"***" + second[:2] + b"*****"


def test_control_frames_between_fragments_pass_untouched_and_in_order():
    control = [(0, PING, b"sk-12345"), (0, PONG, b""), (1, PING, b"x")]

    assert feed(message([b"sk-1", b"23", b"45"], control)) == message([b"****", b"**", b"**"], control)


def test_a_control_frame_does_not_wait_when_nothing_is_held():
    frames = MaskedFrames(Needles.of(SECRET))
    frames.feed(frame(b"abc ", final=False))

    assert frames.feed(frame(b"x", PING)) == frame(b"x", PING)


def test_a_control_frame_waits_behind_the_end_of_a_fragment_whether_it_is_like_a_secret_or_not():
    for end in (b"sk-1", b"oops"):
        frames = MaskedFrames(Needles.of(SECRET))
        frames.feed(frame(b"abc " + end, final=False))

        assert frames.feed(frame(b"x", PING)) == b""
        assert frames.feed(frame(b" ", CONTINUATION)) == end + frame(b"x", PING) + frame(b" ", CONTINUATION)


def test_the_reason_of_a_close_is_masked():
    assert feed(frame(b"\x03\xf0bad key sk-12345", CLOSE)) == frame(b"\x03\xf0bad key ********", CLOSE)
    assert feed(frame(b"\x03\xf0sk-1234", CLOSE)) == frame(b"\x03\xf0sk-1234", CLOSE)
    assert feed(frame(b"", CLOSE)) == frame(b"", CLOSE)


def test_messages_do_not_run_together():
    data = frame(b"sk-1") + frame(b"", PING) + message([b"2345", b"sk-12345"]) + frame(b"12345")

    assert feed(data) == frame(b"sk-1") + frame(b"", PING) + message([b"2345", b"********"]) + frame(b"12345")


@each(
    "data",
    [
        b"\x81\x85abcdhello",
        b"\xc1\x00",
        b"\xa1\x00",
        b"\x91\x00",
        b"\x83\x00",
        b"\x87\x00",
        b"\x8b\x00",
        b"\x8f\x00",
        b"\x89\x7e\x00\x7e",
        b"\x88\x7e\x01\x00",
        b"\x09\x00",
        b"\x08\x00",
        b"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00",
        b"\x80\x00",
        b"\x00\x01x",
        b"\x01\x01x\x81\x01y",
        b"\x01\x01x\x02\x01y",
    ],
)
def test_frames_that_no_server_may_send_are_refused(data):
    with pytest.raises(BadFrame):
        feed(data)


def test_endless_control_frames_behind_held_bytes_are_refused():
    frames = MaskedFrames(Needles.of(SECRET))
    frames.feed(frame(b"sk-1", final=False))

    with pytest.raises(BadFrame):
        read(frames, frame(b"x" * 125, PING) * 1_000)


def test_held_bytes_are_counted_only_once():
    data = message([b"sk-1", b"x"], [(0, PING, b"x" * 125)])

    assert feed(data * 1_000) == data * 1_000


payloads = st.binary(max_size=6).map(lambda raw: bytes(b"ab "[byte % 3] for byte in raw))
forms_drawn = st.lists(payloads.filter(bool), min_size=1, max_size=3)
messages = st.tuples(
    st.lists(payloads, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([PING, PONG]), payloads), max_size=3),
)


@settings(max_examples=400)
@given(forms_drawn, st.lists(messages, max_size=3), st.lists(st.integers(0, 80), max_size=8))
def test_the_chunks_make_no_difference_and_each_message_is_masked_as_a_whole(forms, drawn, cuts):
    sent, expected = b"", b""
    for fragments, control in drawn:
        masked = mask_text(b"".join(fragments), Needles.of(*forms))
        sent += message(fragments, control)
        lengths = [sum(map(len, fragments[:position])) for position in range(len(fragments) + 1)]
        expected += message([masked[start:end] for start, end in pairwise(lengths)], control)
    frames = MaskedFrames(Needles.of(*forms))

    assert b"".join(map(frames.feed, cut(sent, cuts))) == expected


fragments_drawn = st.lists(st.integers(0, 12), min_size=1, max_size=4)


@settings(max_examples=300)
@given(st.lists(fragments_drawn, max_size=3), st.lists(st.integers(0, 80), max_size=8), st.data())
def test_as_much_leaves_at_once_whether_a_message_has_parts_of_the_secret_or_anything_else(sizes, cuts, data):
    of_secret, of_others = b"", b""
    for fragments in sizes:
        # Parts of the secret and any letters, with spaces at the same places.
        spaces = [data.draw(st.lists(st.booleans(), min_size=size, max_size=size)) for size in fragments]
        start = data.draw(st.integers(0, len(SECRET)))
        secret = [bytes(32 if gap else (SECRET * 3)[start + at] for at, gap in enumerate(gaps)) for gaps in spaces]
        other = [bytes(32 if gap else data.draw(st.sampled_from(b"xyz019/")) for gap in gaps) for gaps in spaces]
        of_secret += message(secret, [(0, PING, b"x")])
        of_others += message(other, [(0, PING, b"x")])

    assert lengths(of_secret, cuts) == lengths(of_others, cuts)


def lengths(data, cuts):
    """Return how many bytes leave at once for each chunk."""
    frames = MaskedFrames(Needles.of(SECRET))
    return [len(frames.feed(chunk)) for chunk in cut(data, cuts)]


@settings(max_examples=300)
@given(st.binary(max_size=40))
def test_any_bytes_are_passed_in_length_or_refused(data):
    frames = MaskedFrames(Needles.of(b"abc"))
    try:
        out = b"".join(frames.feed(bytes([byte])) for byte in data)
    except BadFrame:
        return

    assert len(out) <= len(data)
