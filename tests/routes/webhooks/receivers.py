"""A receiver on this machine that notes what it is sent and answers with the status that its path names."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Received(msgspec.Struct):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> Any:
        """Envelope in its body."""
        return msgspec.json.decode(self.body)


class Receiver(ThreadingHTTPServer):
    """Answers `/200/...` with 200, `/500/...` with 500, and so on."""

    daemon_threads = True

    def __init__(self) -> None:
        self.received: list[Received] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def url(self, path: str = "/200") -> str:
        """An address of it."""
        return f"http://127.0.0.1:{self.server_port}{path}"

    def at(self, path: str) -> list[Received]:
        """Return the deliveries to one path."""
        return [one for one in list(self.received) if one.path == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(self.path, headers, body))
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *given: Any) -> None:
        """Say nothing."""


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    """A receiver, until the test is over."""
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
