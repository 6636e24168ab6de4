"""The client of the tests reads answers as strictly as the one that it spares."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.fixtures.plain_http import WHOLE, PlainHttp

GOOD = {
    "with a length": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    "with no length, up to its end": (b"HTTP/1.1 200 OK\r\n\r\nab", b"ab"),
    "in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n", b"ab"),
    "of nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "after an interim one": (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab"),
}
BAD = {
    "cut in its head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "cut in its body": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
    "cut in its chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    "longer than it says": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
    "of more chunks than it says": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nab",
    "with a body where none may be": b"HTTP/1.1 204 No Content\r\n\r\nab",
    "with two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "with a length and chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    ),
    "with a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab",
    "with a chunk that is none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nab\r\n0\r\n\r\n",
    "with a header on two lines": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n c\r\n\r\nab",
    "with a space in a header's name": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nab",
    "with a line that is bare": b"HTTP/1.1 200 OK\r\nContent-Length: 2\nA: b\r\n\r\nab",
    "with a NUL": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: \x00\r\n\r\nab",
    "without a status": b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nab",
    "of nobody": b"",
}


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that says this to the first request, and nothing after it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join()


def ask(url: str, transport: httpx.BaseTransport) -> bytes:
    with httpx.Client(transport=transport, trust_env=False) as client:
        return client.send(client.build_request("GET", url, extensions={WHOLE: True})).content


@pytest.mark.parametrize("kind", GOOD)
def test_an_answer_is_read_as_the_other_client_reads_it(kind: str) -> None:
    answer, body = GOOD[kind]
    for transport in (PlainHttp(), httpx.HTTPTransport(trust_env=False)):
        with answering(answer) as url:
            assert ask(url, transport) == body


@pytest.mark.parametrize("kind", BAD)
def test_an_answer_that_is_none_fails_the_test_that_got_it(kind: str) -> None:
    with answering(BAD[kind]) as url, pytest.raises(httpx.RemoteProtocolError):
        ask(url, PlainHttp())


def test_a_header_of_another_kind_is_left_to_the_other_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, httpx.Client(transport=PlainHttp()) as client:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(httpx.LocalProtocolError):
            client.send(client.build_request("GET", url, headers={"A": "b\nC: d"}, extensions={WHOLE: True}))


def test_a_connection_serves_again_and_one_that_ended_meanwhile_does_not() -> None:
    served, ended = list[int](), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, httpx.Client(transport=PlainHttp()) as client:

        def serve() -> None:
            for number, requests in enumerate((2, 1)):
                connection, _ = server.accept()
                with connection:
                    for _ in range(requests):
                        connection.recv(1 << 16)
                        served.append(number)
                        connection.sendall(GOOD["with a length"][0])
                ended.set()

        thread = threading.Thread(target=serve)
        thread.start()
        for number in range(3):
            if number == 2:
                assert ended.wait(60)
            request = client.build_request(
                "GET", f"http://127.0.0.1:{server.getsockname()[1]}/", extensions={WHOLE: True}
            )
            assert client.send(request).content == b"ab"
        thread.join()
    assert served == [0, 0, 1]
