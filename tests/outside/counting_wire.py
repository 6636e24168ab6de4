"""A wire to a service that counts the requests which pass, and can end at any of those that change something."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Cut = Literal["before it arrives", "after it was done"]


class CountingWire:
    """Passes requests on to a port of this machine; from a cut on it passes nothing."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self._at, self._how, self._on_cut = 0, "", lambda: None
        self._between: tuple[int, Callable[[], None]] | None = None
        self.is_cut = False
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65_537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                wire.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def changing(self) -> list[tuple[str, str]]:
        """The requests that change something."""
        return [request for request in self.requests if request[0] != "GET"]

    def cut(self, at: int, how: Cut, on_cut: Callable[[], None]) -> None:
        """End at the changing request of this number (1 is the next), and say so."""
        self._at, self._how, self._on_cut = len(self.changing) + at, how, on_cut

    def between(self, at: int, act: Callable[[], None]) -> None:
        """Do something once the changing request of this number was done, before its answer is passed on."""
        self._between = (at, act)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass one request on, and its answer back."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self._lock:
            self.requests.append((handler.command, handler.path))
            number = len(self.changing) if handler.command != "GET" else 0
            cuts = self._at and number == self._at
            self.is_cut |= bool(cuts and self._how == "before it arrives")
            dead = self.is_cut
            self.is_cut |= bool(cuts)
        if not dead:
            answer, content = self._pass_on(handler, body)
        if self._between and number == self._between[0]:
            act, self._between = self._between[1], None
            act()
        if cuts:
            self._on_cut()
        if dead or cuts:
            handler.close_connection = True
            return
        handler.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._to, timeout=60)
        try:
            connection.request(handler.command, handler.path, body or None, dict(handler.headers))
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def start(self) -> None:
        """Be there from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Be gone."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def counting_wire(to: int) -> Iterator[CountingWire]:
    """A wire for one test."""
    wire = CountingWire(to)
    wire.start()
    try:
        yield wire
    finally:
        wire.stop()
