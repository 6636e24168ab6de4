"""The client's reading of a stream of events that is not as it should be."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from console.wire import failures
from console.wire.api_client import ApiClient, Event
from console.wire.failures import Away, Failure, Malformed, Patience
from tests.outside import odd_api
from tests.outside.odd_api import Deed, OddApi, answers, refuses, streams, succeeds

# Only for what says nothing: anything else may take its time.
HURRY = Patience(stream_silence=0.15)


@pytest.fixture
async def odd() -> AsyncIterator[OddApi]:
    async with odd_api.odd_api("http://127.0.0.1:9") as api:
        yield api


@pytest.fixture
async def client(odd: OddApi) -> AsyncIterator[ApiClient]:
    client = ApiClient(odd.url)
    yield client
    await client.close()


async def heard_in(client: ApiClient) -> tuple[list[Event], Failure | None]:
    found: list[Event] = []
    try:
        async for event in client.events("5"):
            found.append(event)
    except Failure as failure:
        return found, failure
    return found, None


async def test_events_are_read_however_they_are_cut(odd: OddApi, client: ApiClient) -> None:
    odd.does(streams(*(bytes([one]) for one in b'id: 7\r\nevent: a\rdata: {"b":\ndata: 1}\n\n: still here\n\n')))

    # As they come: this stream has no end.
    async with aclosing(client.events("5")) as events:
        found = [await anext(events) for _ in range(3)]

    assert [(one.id, one.name, one.data) for one in found] == [
        ("5", "open", {}),
        ("7", "a", {"b": 1}),
        ("7", "place", {}),
    ]


async def test_a_stream_that_falls_silent_is_left(odd: OddApi, client: ApiClient) -> None:
    client.patience = HURRY
    odd.does(streams())

    _, failure = await heard_in(client)

    assert failure is not None
    assert failure.sentence == f"The event stream from {odd.url} broke off (ReadTimeout)."


@pytest.mark.parametrize("data", [b"\xff\xfe", b"{", b"[1]", b"[" * 50_000, b'"\\ud800"', b"9" * 5000, b"null", b""])
async def test_garbage_in_the_stream_is_an_event_without_data(odd: OddApi, client: ApiClient, data: bytes) -> None:
    odd.does(streams(b"id: 8\nevent: tx.pending\x1b[2J\ndata: " + data + b"\n\n", then=odd_api.hangs_up))

    events, failure = await heard_in(client)

    assert [(one.id, one.name, one.data) for one in events[1:]] == [("8", "tx.pending\\x1b[2J", {})]
    assert failure is None


@pytest.mark.parametrize("number", [b"\xff", "٣".encode(), b"x\r", b"9" * 21, b"-1"])
async def test_a_place_in_the_stream_that_is_none_is_not_taken(odd: OddApi, client: ApiClient, number: bytes) -> None:
    odd.does(streams(b"id: " + number + b"\ndata: {}\n\n", then=odd_api.hangs_up))

    events, _ = await heard_in(client)

    assert {one.id for one in events} == {"5"}


@pytest.mark.parametrize("piece", [b"x" * 2**16, b"data: " + b"x" * 2**16 + b"\n"], ids=["line", "event"])
async def test_a_stream_without_an_end_of_a_line_or_event_is_left(odd: OddApi, client: ApiClient, piece: bytes) -> None:
    odd.does(streams(*[piece] * 64))

    _, failure = await heard_in(client)

    assert isinstance(failure, Away)
    assert failure.sentence == "The event stream sends an endless message."


@pytest.mark.parametrize(
    ("deed", "kind"),
    [
        (refuses(401, "no"), failures.SignedOut),
        (refuses(429, "too many"), failures.TooFast),
        (answers(200, b"<h1>hotel</h1>", Content_Type="text/html"), Malformed),
        (succeeds({}), Malformed),
        (answers(502, b""), Away),
        (odd_api.says_nothing, Away),
        (odd_api.floods, Malformed),
    ],
    ids=["401", "429", "page", "no stream", "502", "silent", "flood"],
)
async def test_a_response_that_is_no_stream_does_not_count_as_open(
    odd: OddApi, client: ApiClient, deed: Deed, kind: type[Failure]
) -> None:
    client.patience = HURRY if deed is odd_api.says_nothing else client.patience
    odd.does(deed)

    events, failure = await heard_in(client)

    assert (events, type(failure)) == ([], kind)
