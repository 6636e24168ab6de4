"""Fetching from outside: what is dialled, and what becomes of answers, from a little server on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from custody.kit.outside import FETCHES_OF_TENANT, Fetcher, NoAnswer, Outside
from tests.fixtures.each import each

OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Answers every request with the same bytes, and keeps what it was asked."""

    def __init__(self, answer: bytes, *, hold: bool) -> None:
        self.answer, self.hold = answer, hold
        self.asked: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        if self.hold:
            await reader.read()
        writer.close()

    def url(self, host: str = "127.0.0.1", path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(answer: bytes, *, hold: bool = False) -> AsyncIterator[Server]:
    """A server that says this; with `hold` it keeps the connection open afterwards."""
    running = Server(answer, hold=hold)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


def fetcher(*addresses: str, seconds: float = 5, loopback: bool = True) -> Fetcher:
    """One whose names all lead to these addresses."""

    async def lookup(host: str, port: int) -> list[str]:
        return list(addresses or ("127.0.0.1",))

    return Fetcher(Outside(loopback_allowed=loopback, lookup=lookup, answer_seconds=seconds))


async def problem_of(asking: Fetcher, url: str, most_bytes: int = 100) -> str:
    with pytest.raises(NoAnswer) as refused:
        await asking.get(url, tenant="t", most_bytes=most_bytes)
    return refused.value.problem


async def test_a_whole_answer_is_given_with_its_headers() -> None:
    async with serving(OK + b"Content-Length: 2\r\nX-A: 1\r\nX-A: 2\r\n\r\nhi") as server:
        fetched = await fetcher().get(server.url(path="/a;b?c=d"), tenant="t", most_bytes=2)

    assert (fetched.status, fetched.headers["x-a"], fetched.body) == (200, "1, 2", b"hi")
    assert server.asked[0].startswith(b"GET /a;b?c=d HTTP/1.1\r\n")
    assert b"accept-encoding: identity" in server.asked[0].lower()


async def test_a_form_is_posted() -> None:
    async with serving(OK + b"Content-Length: 0\r\n\r\n") as server:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        await fetcher().post(server.url(), b"a=b", tenant="t", most_bytes=10, headers=headers)

    assert server.asked[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"content-length: 3" in server.asked[0].lower()


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with serving(b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n") as server:
        fetched = await fetcher().get(server.url(), tenant="t", most_bytes=10)

    assert fetched.status == 302
    assert len(server.asked) == 1


@each(
    "answer",
    [
        OK + b"Content-Length: 101\r\n\r\n",
        OK + b"Content-Length: 99999999999999999999\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101,
        OK + b"Connection: close\r\n\r\n" + b"x" * 101,
    ],
)
async def test_a_long_answer_is_not_read_to_its_end(answer: bytes) -> None:
    async with serving(answer, hold=True) as server:
        assert await problem_of(fetcher(), server.url()) == "too_large"


@each("encoding", [b"gzip", b"br", b"identity, gzip", b"x"])
async def test_an_encoded_answer_is_refused_before_it_is_read(encoding: bytes) -> None:
    async with serving(OK + b"Content-Encoding: " + encoding + b"\r\nContent-Length: 50\r\n\r\n", hold=True) as server:
        assert await problem_of(fetcher(), server.url()) == "encoded"


@each("answer", [b"", OK, OK + b"Content-Length: 5\r\n\r\nab"])
async def test_the_deadline_is_for_the_whole_answer(answer: bytes) -> None:
    async with serving(answer, hold=True) as server:
        assert await problem_of(fetcher(seconds=0.3), server.url()) == "timeout"


@each("answer", [b"nonsense\r\n\r\n", OK + b"Content-Length: 5\r\n\r\nab"])
async def test_an_answer_that_is_none_or_breaks_off_is_refused(answer: bytes) -> None:
    async with serving(answer) as server:
        assert await problem_of(fetcher(), server.url()) == "closed"


@each(
    "addresses",
    [
        ("10.0.0.1",),
        ("169.254.169.254",),
        ("::ffff:127.0.0.1",),
        ("127.0.0.1", "192.168.0.1"),
        ("192.168.0.1", "127.0.0.1"),
        ("100.64.0.1",),
        ("64:ff9b::7f00:1",),
    ],
)
async def test_one_bad_address_of_a_name_is_enough_to_refuse_it(addresses: tuple[str, ...]) -> None:
    async with serving(OK) as server:
        assert await problem_of(fetcher(*addresses), server.url("idp.localhost")) == "address_blocked"

        assert server.asked == []


async def test_a_name_that_leads_elsewhere_the_second_time_leads_nowhere() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def lookup(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async with serving(OK + b"Content-Length: 0\r\n\r\n") as server:
        asking = Fetcher(Outside(loopback_allowed=True, lookup=lookup))
        assert (await asking.get(server.url("localhost"), tenant="t", most_bytes=1)).status == 200

        assert await problem_of(asking, server.url("localhost")) == "address_blocked"
        assert len(server.asked) == 1


@each("host", ["127.0.0.1", "localhost"])
async def test_loopback_is_dialled_only_where_the_deployment_is_there_too(host: str) -> None:
    async with serving(OK) as server:
        for url in (server.url(host), server.url(host).replace("http:", "https:")):
            assert await problem_of(fetcher(loopback=False), url) == "address_blocked"

        assert server.asked == []


@each("url", ["http://u:p@localhost/", "http://localhost/#x", "ftp://localhost/", "//localhost", ""])
async def test_an_address_with_more_than_a_place_is_not_dialled(url: str) -> None:
    assert await problem_of(fetcher(), url) == "address_blocked"


async def test_one_tenant_cannot_take_every_place() -> None:
    async with serving(b"", hold=True) as server:
        asking = fetcher(seconds=1)
        async with asyncio.TaskGroup() as group:
            for _ in range(FETCHES_OF_TENANT):
                group.create_task(problem_of(asking, server.url()))
            await asyncio.sleep(0)
            assert await problem_of(asking, server.url()) == "busy"
        with pytest.raises(NoAnswer) as refused:
            await asking.get(server.url(), tenant="another", most_bytes=1)
        assert refused.value.problem == "timeout"


async def test_a_refused_connection_and_an_unknown_name_are_told_apart() -> None:
    async def nothing(host: str, port: int) -> list[str]:
        raise OSError

    nowhere = Fetcher(Outside(loopback_allowed=True, lookup=nothing))

    assert await problem_of(fetcher(), "http://127.0.0.1:1/") == "connect"
    assert await problem_of(nowhere, "http://a.localhost:1/") == "name"
