"""The tokens that an answer says it cost: read in pieces, within a bound, and believed only where they make sense."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.credentials.prices import Counts, TokenPrices
from proxy_addon.usage import MAX_HELD, Meter

SSE = "text/event-stream; charset=utf-8"
OPENAI = TokenPrices(form="openai", input=1, output=1)
ANTHROPIC = TokenPrices(form="anthropic", input=1, output=1)
POINTERS = TokenPrices(form="pointers", input=1, output=1, input_at="/meta/in", output_at="/meta/out~1s")


def events(*data: Any) -> bytes:
    """A stream of events, each with a name and its data."""
    return b"".join(b"event: e\r\ndata: " + json.dumps(one).encode() + b"\r\n\r\n" for one in data)


DONE = b"data: [DONE]\n\n"
CHAT = {"choices": [{"message": {"content": 'say "usage": {}'}}]}
CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
RESPONSE = {"usage": {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}}
MESSAGE = {
    "input_tokens": 6,
    "output_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 3,
}
STREAMED = events(
    {"type": "message_start", "message": {"usage": MESSAGE | {"output_tokens": 1}}},
    {"type": "content_block_delta", "delta": {"partial_json": '"usage"'}},
    {"type": "message_delta", "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
GOOD = [
    (OPENAI, None, json.dumps(CHAT | {"usage": CHAT_USAGE}).encode(), Counts(input=6, output=5, cached=4)),
    (OPENAI, None, json.dumps(RESPONSE).encode(), Counts(input=6, output=5, cached=4)),
    (OPENAI, None, b'{"usage": {"prompt_tokens": 3, "total_tokens": 3}}', Counts(input=3)),
    (
        OPENAI,
        SSE,
        events(CHAT, CHAT | {"usage": None}, CHAT | {"usage": CHAT_USAGE}) + DONE,
        Counts(input=6, output=5, cached=4),
    ),
    (
        OPENAI,
        SSE,
        events(
            {"type": "response.created", "response": {"usage": None}},
            {"type": "response.completed", "response": RESPONSE},
        ),
        Counts(input=6, output=5, cached=4),
    ),
    (
        ANTHROPIC,
        None,
        json.dumps({"type": "message", "usage": MESSAGE}).encode(),
        Counts(input=6, output=5, cached=4, cache_write=3),
    ),
    (ANTHROPIC, SSE, STREAMED, Counts(input=6, output=5, cached=4, cache_write=3)),
    (POINTERS, None, b'{"meta": {"in": 7, "out/s": 8}}', Counts(input=7, output=8)),
    (POINTERS, SSE, events({"text": "a"}, {"meta": {"in": 7, "out/s": 8}}), Counts(input=7, output=8)),
    # Counts that go on, as some say them with each event; and a smaller one, which takes back nothing.
    (
        OPENAI,
        SSE,
        events(*({"usage": {"prompt_tokens": 3, "completion_tokens": count}} for count in (1, 9, 2))) + DONE,
        Counts(input=3, output=9),
    ),
]


def measure(said: TokenPrices, kind: str | None, text: bytes, cuts: list[int]) -> tuple[Counts | None, int]:
    """The counts of an answer that comes in such pieces, and the most that was held."""
    held = most = 0

    def hold(count: int) -> bool:
        nonlocal held, most
        held += count
        most = max(most, held)
        assert held >= 0
        return True

    meter = Meter(said, kind, hold)
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(edges):
        meter.feed(text[begin:end])
    return meter.end(), most


@pytest.mark.parametrize(("said", "kind", "text", "counts"), GOOD)
@given(cuts=st.lists(st.integers(0, 2**16), max_size=20))
def test_the_counts_of_each_form_are_found_however_the_answer_is_cut(
    said: TokenPrices, kind: str | None, text: bytes, counts: Counts, cuts: list[int]
) -> None:
    assert measure(said, kind, text, cuts)[0] == counts


@pytest.mark.parametrize(("said", "kind", "text", "counts"), GOOD)
def test_of_an_answer_that_is_cut_nothing_is_known(
    said: TokenPrices, kind: str | None, text: bytes, counts: Counts
) -> None:
    end = text.rindex(b"}")

    assert measure(said, kind, text[:end], [])[0] is None


@pytest.mark.parametrize("count", [-5, 10**30, 10**12 + 1, 1.5, "7", True, None, [7]], ids=repr)
@pytest.mark.parametrize("place", ["prompt_tokens", "completion_tokens", "cached"])
def test_a_count_that_makes_no_sense_is_none(count: Any, place: str) -> None:
    usage: dict[str, Any] = CHAT_USAGE | {place: count}
    if place == "cached":
        usage["prompt_tokens_details"] = {"cached_tokens": 11 if count is None else count}
    sense = measure(OPENAI, None, json.dumps(CHAT | {"usage": CHAT_USAGE}).encode(), [])[0]

    for kind, text in ((None, json.dumps({"usage": usage}).encode()), (SSE, events({"usage": usage}))):
        assert measure(OPENAI, kind, text, [])[0] is None
        assert sense is not None
    odd = json.dumps({"meta": {"in": 7, "out/s": count}}).encode()
    assert measure(POINTERS, None, odd, [])[0] is None


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        (OPENAI, None, b""),
        (OPENAI, None, b"not json"),
        (OPENAI, None, b"{}"),
        (OPENAI, None, b'{"usage": {}}'),
        (OPENAI, None, b"[" * 100_000),
        (OPENAI, SSE, events(CHAT)),
        # A later one that makes no sense takes the earlier one's credit away.
        (OPENAI, SSE, events({"usage": CHAT_USAGE}, {"usage": {"prompt_tokens": -1}}) + DONE),
        # Nothing said that the stream was over, or something came after what was said: it has cost more by then.
        (OPENAI, SSE, events(CHAT | {"usage": CHAT_USAGE})),
        (OPENAI, SSE, events({"usage": CHAT_USAGE}, CHAT) + DONE),
        (OPENAI, SSE, events({"usage": CHAT_USAGE}, CHAT | {"usage": None}) + DONE),
        (OPENAI, SSE, events({"usage": CHAT_USAGE}) + DONE + events(CHAT)),
        (OPENAI, SSE, events({"type": "response.in_progress", "response": RESPONSE})),
        (OPENAI, SSE, events({"type": "response.completed", "response": RESPONSE}, {"delta": "more"})),
        (ANTHROPIC, SSE, STREAMED[: STREAMED.index(b"event: e\r\ndata: " + b'{"type": "message_stop"')]),
        (ANTHROPIC, SSE, STREAMED + events({"type": "content_block_delta"})),
        (POINTERS, SSE, events({"meta": {"in": 7, "out/s": 8}}, {"text": "more"})),
        # Nothing said how the message ended, which has cost more by then.
        (ANTHROPIC, SSE, STREAMED[: STREAMED.index(b"event: e\r\ndata: ", 20)]),
        (ANTHROPIC, None, b'{"type": "error", "error": {}}'),
        (POINTERS, None, b'{"meta": 5}'),
        (POINTERS, None, b'{"meta": {"in": 7}}'),
    ],
)
def test_an_answer_without_usage_says_nothing(said: TokenPrices, kind: str | None, text: bytes) -> None:
    assert measure(said, kind, text, [])[0] is None


@pytest.mark.parametrize("kind", [None, SSE])
def test_of_an_answer_that_is_too_long_nothing_is_known_and_little_held(kind: str | None) -> None:
    usage = json.dumps({"usage": CHAT_USAGE}).encode()
    padding = b" " * (MAX_HELD + 1)
    text = usage[:-1] + padding + b"}" if kind is None else b"data: " + padding + usage + b"\n\n" + DONE

    counts, most = measure(OPENAI, kind, text, list(range(0, len(text), 65536)))

    assert counts is None
    assert most <= MAX_HELD
    short = text.replace(padding, b"")
    assert measure(OPENAI, kind, short, [])[0] is not None


def test_without_room_nothing_is_held_or_known() -> None:
    meter = Meter(OPENAI, None, lambda count: count <= 0)

    meter.feed(json.dumps({"usage": CHAT_USAGE}).encode())

    assert meter.end() is None


@given(
    st.builds(Counts, input=st.integers(0, 10**12), output=st.integers(0, 10**12), cached=st.integers(0, 10**12)),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
)
def test_a_price_is_rounded_up_to_a_millionth_and_never_down(counts: Counts, input_: int, output: int) -> None:
    prices = TokenPrices(form="openai", input=input_, output=output)

    exact = (counts.input + counts.cached) * input_ + counts.output * output

    assert exact <= prices.cost(counts) * 10**6 < exact + 10**6
