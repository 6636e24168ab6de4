"""Chunked bodies: read however they are cut, a bounded part at one go, and refused when they are none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_addon.chunks import MAX_CHUNK_LINE, MAX_CHUNKS_AT_ONCE, MAX_TRAILERS, BadChunk, Chunks
from proxy_addon.fragmentation import MAX_FRAGMENTS, TooFragmented
from tests.fixtures.each import each

END = b"0\r\n\r\n"


def read(*parts):
    """The payload of a body that comes in parts, whether it ended, and what is left behind it."""
    chunks, payload, waiting = Chunks(), b"", b""
    for part in parts:
        waiting, on = waiting + part, True
        while on and not chunks.ended:
            said, used, on = chunks.take(waiting)
            payload, waiting = payload + said, waiting[used:]
    return payload, chunks.ended, waiting


def chunk(payload):
    return b"%x\r\n%s\r\n" % (len(payload), payload)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=12), st.lists(st.integers(0, 400), max_size=8))
def test_a_body_is_read_however_it_is_cut(pieces, cuts):
    whole = b"".join(map(chunk, pieces)) + b"0\r\nA: b\r\n\r\nnext"
    marks = sorted({min(mark, len(whole)) for mark in cuts} | {0, len(whole)})

    assert read(*(whole[start:end] for start, end in pairwise(marks))) == (b"".join(pieces), True, b"next")


@each(
    "body",
    [
        b"3\r\nabc\r\n" + END,
        b"3;a=b\r\nabc\r\n" + END,
        b'3; a="b c" \r\nabc\r\n' + END,
        b"3 \t\r\nabc\r\n" + END,
        b"0000003\r\nabc\r\n" + END,
        b"3\r\nabc\r\n000\r\n\r\n",
        b"3\r\nabc\r\n0\r\nA:\r\nB: c d\r\n\r\n",
    ],
)
def test_chunks_that_the_standard_allows_are_read(body):
    assert read(body) == (b"abc", True, b"")


@each(
    "body",
    [
        b"\r\n",
        b"x\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1 1\r\n",
        b" 1\r\n",
        b"1_0\r\n",
        b"1,1\r\n",
        b"f" * 17 + b"\r\n",
        b"1\r\nab\r\n",
        b"1\r\na\n",
        b"1\r\na\rb",
        b"1;a\nb\r\n",
        b"1;\0\r\n",
        b"1;a\rb\r\n",
        b"0\r\nno colon\r\n",
        b"0\r\n: x\r\n",
        b"0\r\nA : b\r\n",
        b"0\r\n folded: x\r\n",
        b"0\r\nA: \0\r\n",
    ],
)
def test_chunks_that_the_standard_forbids_are_refused(body):
    with pytest.raises(BadChunk):
        read(body)


@each("line", [b"1;" + b" " * MAX_CHUNK_LINE, b"0\r\na:" + b" " * MAX_TRAILERS, b"1;" + b"x" * 300])
def test_a_line_without_end_is_not_waited_for(line):
    with pytest.raises(BadChunk):
        read(line)


def test_trailers_without_end_are_not_read():
    with pytest.raises(BadChunk):
        read(b"0\r\n" + b"A: b\r\n" * (MAX_TRAILERS // 6 + 1))


@each("body", [b"1\r\na\r\n" * 5_000, b"0\r\n" + b"A:\r\n" * 1_000])
def test_one_go_reads_only_so_many_lines(body):
    _, used, on = Chunks().take(body)

    assert used <= MAX_CHUNKS_AT_ONCE * 6
    assert on


def test_very_many_chunks_of_a_byte_are_refused_and_of_eight_bytes_are_not():
    assert len(read(chunk(b"8 bytes!") * MAX_FRAGMENTS * 2)[0]) == 16 * MAX_FRAGMENTS
    assert len(read(chunk(b"a") * MAX_FRAGMENTS)[0]) == MAX_FRAGMENTS

    with pytest.raises(TooFragmented):
        read(chunk(b"a") * (MAX_FRAGMENTS + 1))
