"""A web server in this process that keeps what it was asked, and answers each path as a test wants it."""

import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.outside.certificates import Authority
from tests.outside.replies import Answers, Heard, Reply


class WebServer:
    """A web server: its address, its requests in order, and the answers that replace its own."""

    def __init__(self) -> None:
        self.url = ""
        self.heard: list[Heard] = []
        # Bytes of bodies in pieces that were taken off our hands.
        self.sent = 0
        self.ending = threading.Event()
        self._instead: dict[tuple[str, str], Answers] = {}

    def replies(self, path: str, answers: Answers, method: str = "") -> None:
        """From now on answer this to requests for exactly this path, whatever the server itself would say."""
        self._instead[path, method] = answers

    def delays(self, path: str, seconds: float) -> None:
        """From now on answer requests for this path as the server itself does, but so much later."""
        self.replies(path, lambda heard: msgspec.structs.replace(self.respond(heard), after_seconds=seconds))

    def well(self) -> None:
        """From now on answer everything as the server itself does."""
        self._instead = {}

    def at(self, path: str) -> list[Heard]:
        """Return the requests to a path."""
        return [one for one in self.heard if one.path == path]

    def begin(self) -> None:
        """Be told that `url` is known."""

    def respond(self, heard: Heard) -> Reply:
        """Answer as the server itself does."""
        return Reply(404)

    def answer(self, heard: Heard) -> Reply:
        """Keep a request and find the answer to it."""
        self.heard.append(heard)
        found = self._instead.get((heard.path, heard.method)) or self._instead.get((heard.path, ""))
        if found is None:
            return self.respond(heard)
        return found(heard) if callable(found) else found


class _Connection(BaseHTTPRequestHandler):
    ours: WebServer

    def setup(self) -> None:
        # Only a thread of its own may wait for a caller that never says hello.
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        parts = urlsplit(self.path)
        body = self.rfile.read(int(headers.get("content-length", 0)))
        reply = self.ours.answer(Heard(self.command, parts.path, parts.query, headers, body))
        if self.ours.ending.wait(reply.after_seconds):
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if isinstance(reply.body, bytes):
            self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self._write(reply)

    do_POST = do_PUT = do_DELETE = do_GET

    def _write(self, reply: Reply) -> None:
        if isinstance(reply.body, bytes):
            self.wfile.write(reply.body)
            return
        for piece in reply.body:
            self.wfile.write(piece)
            self.ours.sent += len(piece)
            if self.ours.ending.wait(reply.between_seconds):
                break

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show a fault; a caller that hangs up is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def serving[Server: WebServer](server: Server, authority: Authority | None = None, *names: str) -> Iterator[Server]:
    """Start it on loopback; with an authority it speaks TLS under the name `localhost`, and under these."""
    connection = type("Connection", (_Connection,), {"ours": server})
    with _Listener(("127.0.0.1", 0), connection) as listener:
        port = listener.server_address[1]
        server.url = f"http://127.0.0.1:{port}"
        if authority:
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            trust.load_cert_chain(authority.leaf(f"web-{port}", "localhost", *names))
            listener.socket = trust.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
            server.url = f"https://localhost:{port}"
        server.begin()
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            listener.shutdown()
            thread.join()
