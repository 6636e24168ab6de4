"""Undoing codings: the same bytes however they come, never more than a bounded part at one go."""

import gzip
import os
import zlib
from collections.abc import Callable
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from proxy_addon.decode import BadCoding, Decoder, codings_in, plain_head
from tests.fixtures.each import each


def _raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


def _in_parts(encode: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(encode(data[at : at + 999]) for at in range(0, len(data) or 1, 999))


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip in members": ("gzip", _in_parts(gzip.compress)),
    "gzip with padding": ("gzip", lambda data: gzip.compress(data) + bytes(100)),
    "gzip that is none": ("gzip", lambda data: b"plain" + data),
    "deflate": ("deflate", zlib.compress),
    "deflate without its frame": ("deflate", _raw_deflate),
    "brotli": ("br", brotli.compress),
    "zstandard": ("zstd", zstandard.ZstdCompressor().compress),
    "zstandard in frames": ("zstd", _in_parts(zstandard.compress)),
    "zstandard that is none": ("zstd", lambda data: b"plain" + data),
    "gzip in gzip in brotli": ("gzip, gzip, br", lambda data: brotli.compress(gzip.compress(gzip.compress(data)))),
}
BODIES = {
    "text": b'{"data": [1, 2, 3]}' * 3000,
    "a little": b"ok",
    "nothing": b"",
    "noise": os.urandom(100_000),
    "zeros": bytes(900_000),
}


def decode(codings: str, data: bytes, piece: int) -> bytes:
    """All of it, in pieces of this size; no go makes much more than a read brings."""
    decoder, plain = Decoder(codings_in([codings]) or []), b""
    for at in range(0, len(data), piece):
        plain += within_a_go(decoder.feed(data[at : at + piece]))
        while decoder.unread:
            plain += within_a_go(decoder.feed(b""))
    decoder.end()
    return plain


def within_a_go(made: bytes) -> bytes:
    assert len(made) <= 16 * 1024
    return made


@each("piece", [1, 4096, 16384])
@each("body", BODIES)
@each("name", ENCODERS)
def test_the_bytes_are_the_same_however_they_come(name: str, body: str, piece: int) -> None:
    codings, encode = ENCODERS[name]
    encoded = encode(BODIES[body])
    if len(encoded) > 10_000 and piece == 1:
        piece = 601
    assert decode(codings, encoded, piece) == BODIES[body].join([b"plain" * (" none" in name), b""])


@each("name", [name for name in ENCODERS if "none" not in name and "padding" not in name])
def test_a_body_that_ends_within_its_coding_is_none(name: str) -> None:
    codings, encode = ENCODERS[name]
    encoded = encode(BODIES["text"][:900])
    with pytest.raises(BadCoding):
        decode(codings, encoded[:-1], 100)


@each("codings", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_a_body_that_never_began_is_empty(codings: str) -> None:
    assert decode(codings, b"", 1) == b""


@given(st.binary(max_size=400), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, zstd"]), st.integers(1, 50))
def test_any_bytes_are_decoded_or_refused(data: bytes, codings: str, piece: int) -> None:
    head = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}.get(codings, b"")
    with suppress(BadCoding):
        decode(codings, head + data, piece)


BOMBS = {
    "gzip": gzip.compress(bytes(40_000_000)),
    "deflate": zlib.compress(bytes(40_000_000)),
    "br": brotli.compress(bytes(40_000_000), quality=5),
    "zstd": zstandard.compress(bytes(40_000_000)),
    "gzip, gzip": gzip.compress(gzip.compress(bytes(40_000_000))),
    "gzip, br, zstd": zstandard.compress(brotli.compress(gzip.compress(bytes(40_000_000)), quality=5)),
}


@each("codings", BOMBS)
def test_a_bomb_goes_off_early(codings: str) -> None:
    decoder, data, made = Decoder(codings_in([codings]) or []), BOMBS[codings], []

    def feed_all() -> None:
        for at in range(0, len(data), 16384):
            made.append(len(within_a_go(decoder.feed(data[at : at + 16384]))))
            while decoder.unread:
                made.append(len(within_a_go(decoder.feed(b""))))

    with pytest.raises(BadCoding):
        feed_all()
    assert sum(made) <= min(2**20 + 256 * len(data), 10_000_000)


def test_members_by_the_thousand_take_many_goes() -> None:
    for codings, member in (("gzip", gzip.compress(b"")), ("zstd", zstandard.compress(b""))):
        decoder = Decoder(codings_in([codings]) or [])
        data, goes = member * (16_384 // len(member)), 1
        decoder.feed(data)
        while decoder.unread:
            decoder.feed(b"")
            goes += 1
        assert goes * 80 >= 16_384 // len(member)


@each(
    ("names", "codings"),
    [
        ([], []),
        (["identity"], []),
        (["UTF-8"], []),
        (["GZip"], ["gzip"]),
        (["x-gzip"], ["gzip"]),
        (["deflate", "br , gzip"], ["deflate", "br", "gzip"]),
        (["identity, zstd"], ["zstd"]),
        (["aws-chunked"], None),
        (["gzip, aws-chunked"], None),
        (["compress"], None),
        (["gzip"] * 4, None),
        (["," * 200], None),
    ],
)
def test_codings_are_read_from_their_headers(names: list[str], codings: list[str] | None) -> None:
    assert codings_in(names) == codings


def test_headers_that_are_true_of_coded_bytes_alone_are_gone() -> None:
    fields = [
        (b"ETag", b'"a"'),
        (b"Content-Length", b"5"),
        (b"content-encoding", b"gzip"),
        (b"X", b"y"),
        (b"Digest", b"z"),
    ]

    assert plain_head(fields) == [(b"ETag", b'W/"a"'), (b"X", b"y")]
    assert plain_head([(b"etag", b'W/"a"')]) == [(b"etag", b'W/"a"')]


@each("bits", [10, 15, 16, 17, 18, 22, 24])
def test_a_brotli_stream_counts_the_window_that_it_names(bits):
    decoder = Decoder(["br"])
    decoder.feed(brotli.compress(os.urandom(2**18) * 4, lgwin=bits))
    while decoder.unread:
        decoder.feed(b"")
    decoder.end()

    assert decoder.memory <= 2**18 + min(2**bits, 2**20)
