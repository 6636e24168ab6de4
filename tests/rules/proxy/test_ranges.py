"""Parts of an answer: what is asked of the upstream, and that a part is that part of the whole, masked answer."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proxy_addon.mask import NOTHING, Masker, mask_text, needles
from proxy_addon.ranges import BadPart, BeyondEnd, Cut, RangeNotForwarded, Wanted, cut_to, not_offered, read
from tests.fixtures.each import each

VALUE = 'sk-"a/b+c\\d&e'
NEEDLES = needles(VALUE)
CONTEXT = 2 * NEEDLES.longest


def read_range(value, *more, method="GET", name=b"Range", forwarded=True):
    return read(method, [(b"Accept", b"*/*"), (name, value), *more], NEEDLES, forwarded=forwarded)


@each(
    ("value", "first", "last", "sent"),
    [
        (b"bytes=0-", 0, None, b"bytes=0-"),
        (b"bytes=0-9", 0, 9, b"bytes=0-%d" % (9 + CONTEXT)),
        (b" Bytes=5-5", 5, 5, b"bytes=0-%d" % (5 + CONTEXT)),
        (b"bytes=100000-", 100_000, None, b"bytes=%d-" % (100_000 - CONTEXT)),
        (b"bytes=-7", None, 7, b"bytes=-%d" % (7 + CONTEXT)),
    ],
)
def test_the_upstream_is_asked_for_more_on_both_sides(value, first, last, sent):
    for name in (b"Range", b"x-ms-range", b"X_MS_Range"):
        wanted = read_range(value, name=name)

        assert wanted == Wanted(name.lower().replace(b"_", b"-"), first, last, CONTEXT)
        assert wanted.as_sent() == sent


@each(
    "value",
    [
        b"bytes=0-1,3-4",
        b"bytes=5-4",
        b"bytes=",
        b"bytes=-",
        b"bytes= 0-1",
        b"bytes=0-1;",
        b"items=0-1",
        b"bytes=1-99999999999999999",
        b"bytes=-1-2",
        b"x",
        b"",
    ],
)
def test_all_but_one_range_of_bytes_is_refused(value):
    with pytest.raises(RangeNotForwarded):
        read_range(value)


def test_a_range_is_refused_where_it_would_be_dropped():
    for name in (b"Range", b"Request-Range", b"X-Ms-Range", b"X-Goog-Range", b"x_amz_range"):
        with pytest.raises(RangeNotForwarded):
            read_range(b"bytes=0-1", name=name, forwarded=False)
    for name in (b"Request-Range", b"X-Goog-Range"):
        with pytest.raises(RangeNotForwarded):
            read_range(b"bytes=0-1", name=name)
    with pytest.raises(RangeNotForwarded):
        read_range(b"bytes=0-1", method="POST")
    with pytest.raises(RangeNotForwarded):
        read_range(b"bytes=0-1", (b"range", b"bytes=0-1"))


def test_the_whole_may_always_be_asked_for():
    assert read_range(b"bytes=0-", forwarded=False) is None
    assert read_range(b"2026-01-01..2026-02-01", name=b"X-Date-Range", forwarded=False) is None
    assert read_range(b"bytes=0-", (b"X-Ms-Range", b"bytes=0-"), forwarded=False) is None
    assert read_range(b"bytes=0-1", method="HEAD", forwarded=False) is None
    for name in (
        b"Content-Range",
        b"If-Range",
        b"X-Upload-Content-Range",
        b"x-ms-source-range",
        b"X-Copy-Source-Range",
    ):
        assert read_range(b"bytes 0-1/2", name=name, forwarded=False) is None


def store_answer(text, wanted):
    """Answer as an object store does."""
    start, end = re.fullmatch(rb"bytes=([0-9]*)-([0-9]*)", wanted.as_sent()).groups()
    first = int(start) if start else max(0, len(text) - int(end))
    last = min(int(end), len(text) - 1) if start and end else len(text) - 1
    said, part = b"bytes %d-%d/%d" % (first, last, len(text)), text[first : last + 1]
    return [(b"Content-Range", said), (b"Content-Length", b"%d" % len(part))], part


def part_of(text, value, pieces=1000):
    wanted = read_range(value)
    headers, body = store_answer(text, wanted)
    head, cut = cut_to(wanted, headers, NEEDLES)
    shown = b"".join(cut.feed(body[at : at + pieces]) for at in range(0, len(body), pieces)) + cut.end()
    return dict(head), shown


pieces = st.sampled_from(["a", "\n", "{", "\\", '"', " ", VALUE, VALUE[:5], VALUE[5:], "x" * 60, "%73k-", "&quot;"])
texts = st.lists(pieces, max_size=12).map(lambda parts: "".join(parts).encode())


@given(texts, st.integers(0, 200), st.integers(0, 40), st.sampled_from(["{0}-{1}", "{0}-", "-{2}"]), st.integers(1, 50))
def test_a_part_is_that_part_of_the_whole_masked_text(text, first, more, form, pieces):
    assume(first < len(text))
    masked = mask_text(text, NEEDLES)
    value = "bytes=" + form.format(first, first + more, more + 1)

    head, shown = part_of(text, value.encode(), pieces)

    expected = {"{0}-{1}": masked[first : first + more + 1], "{0}-": masked[first:], "-{2}": masked[-more - 1 :]}[form]
    assert shown == expected
    start, end = map(int, re.fullmatch(rb"bytes ([0-9]+)-([0-9]+)/[0-9]+", head[b"Content-Range"]).groups())
    assert (start, end + 1 - start) == (len(text) - len(masked[-more - 1 :]) if form == "-{2}" else first, len(shown))
    assert head[b"Content-Length"] == b"%d" % len(shown)


def test_a_mask_that_sees_the_part_alone_would_show_all_of_the_credential():
    text = b"key: " + VALUE.encode() + b"."
    alone = b"".join(mask_text(text[at : at + 1], NEEDLES) for at in range(len(text)))
    both = b"".join(part_of(text, b"bytes=%d-%d" % (at, at))[1] for at in range(len(text)))

    assert alone == text
    assert both == b"key: " + b"*" * len(VALUE) + b"."


@each(
    "said",
    [
        b"bytes 1-200/400",
        b"bytes 0-%d/9999" % (CONTEXT - 1),
        b"bytes 0-9/10000",
        b"bytes 0-400/400",
        b"bytes */400",
        b"bytes 0-399",
        b"items 0-399/400",
        b"",
    ],
)
def test_a_part_other_than_the_one_asked_for_is_bad(said):
    with pytest.raises(BadPart):
        cut_to(read_range(b"bytes=0-9"), [(b"Content-Range", said)], NEEDLES)


def test_a_part_has_one_range_and_the_length_that_it_says():
    said = (b"Content-Range", b"bytes 0-19/20")

    assert cut_to(read_range(b"bytes=0-9"), [said], NEEDLES)[0] == [(b"Content-Range", b"bytes 0-9/20")]
    for more in ((said,), ((b"Content-Length", b"19"),), ((b"Content-Length", b"20"), (b"content-length", b"20"))):
        with pytest.raises(BadPart):
            cut_to(read_range(b"bytes=0-9"), [said, *more], NEEDLES)
    with pytest.raises(BadPart):
        cut_to(read_range(b"bytes=-5"), [(b"Content-Range", b"bytes 5-19/20")], NEEDLES)
    with pytest.raises(BadPart):
        cut_to(read_range(b"bytes=-5"), [(b"Content-Range", b"bytes 0-19/*")], NEEDLES)


def test_a_shorter_part_than_asked_for_keeps_enough_behind_it():
    wanted, end = read_range(b"bytes=0-99999"), 3 * CONTEXT
    head, _ = cut_to(wanted, [(b"Content-Range", b"bytes 0-%d/*" % end)], NEEDLES)

    assert head == [(b"Content-Range", b"bytes 0-%d/*" % (end - CONTEXT))]


def test_a_part_behind_the_end_is_none():
    with pytest.raises(BeyondEnd) as raised:
        cut_to(read_range(b"bytes=20-"), [(b"Content-Range", b"bytes 0-19/20")], NEEDLES)

    assert raised.value.total == 20


def test_checksums_of_the_upstreams_part_are_left_out():
    odd = [(name, b"x") for name in (b"Content-MD5", b"Digest", b"Content-Digest", b"x-amz-checksum-crc32")]
    head, _ = cut_to(read_range(b"bytes=0-9"), [(b"Content-Range", b"bytes 0-19/20"), *odd, (b"ETag", b"y")], NEEDLES)

    assert head == [(b"Content-Range", b"bytes 0-9/20"), (b"ETag", b"y")]


def test_parts_are_not_offered_where_none_are_to_be_had():
    assert not_offered([(b"accept-RANGES", b"bytes"), (b"A", b"b")]) == [(b"accept-RANGES", b"none"), (b"A", b"b")]


def test_a_route_without_a_credential_forwards_parts_too():
    wanted = read("GET", [(b"Range", b"bytes=2-3")], NOTHING, forwarded=True)
    head, cut = cut_to(wanted, [(b"Content-Range", b"bytes 0-5/9"), (b"Content-Length", b"6")], NOTHING)

    assert (dict(head)[b"Content-Range"], cut.feed(b"abcdef") + cut.end()) == (b"bytes 2-3/9", b"cd")


def test_a_cut_says_nothing_of_what_it_cuts():
    assert repr(Cut(Masker(NEEDLES), 1, 1)) == "Cut()"
