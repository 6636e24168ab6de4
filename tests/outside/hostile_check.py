"""A service that agents' orders are asked about: its path says how it answers. Its key is of another library."""

import hashlib
import json
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_LINE = b"custody-external-check-v1\n"


class Checker:
    """The questions that it got, as they came, and the ways in which it answers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._first: tuple[bytes, str] | None = None
        self.asked: list[dict[str, Any]] = []
        self.pair, self.other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self.key = b64encode(self.pair.public_key().public_bytes_raw()).decode()
        self.url = ""
        # An answer that never comes ends with the test.
        self.over = Event()

    def note(self, asked: bytes) -> None:
        """Keep what was asked."""
        with self._lock:
            self.asked.append(json.loads(asked))

    def answer(self, asked: bytes, decision: str, pair: Ed25519PrivateKey | None = None) -> tuple[bytes, str]:
        """Make a signed answer."""
        body = json.dumps({"decision": decision, "at": int(time.time()), "reason": "said by the service"}).encode()
        signed = (pair or self.pair).sign(_LINE + hashlib.sha256(asked).hexdigest().encode() + b"\n" + body)
        return body, b64encode(bytes(signed)).decode()

    def first(self, asked: bytes) -> tuple[bytes, str]:
        """Give the answer to the first question to every one."""
        with self._lock:
            self._first = self._first or self.answer(asked, "allow")
            return self._first


class _Reply:
    """An answer as a good service sends it, until the path says otherwise."""

    def __init__(self, how: str, checker: Checker, asked: bytes) -> None:
        self.how = how
        self.body, self.signature = checker.answer(asked, how if how in ("ask", "refuse") else "allow")
        if how == "first":
            self.body, self.signature = checker.first(asked)
        elif how == "another-key":
            self.body, self.signature = checker.answer(asked, "allow", checker.other)
        elif how == "another-question":
            self.body, self.signature = checker.answer(asked + b" ", "allow")
        elif how == "large":
            self.body += b" " * 4_096
        self.signature = {"unsigned": "", "hex": "ab" * 64}.get(how, self.signature)
        self.status = {"redirect": 307, "failing": 500, "created": 201}.get(how, 200)
        more = {"redirect": ("Location", f"{checker.url}/allow"), "encoded": ("Content-Encoding", "gzip")}
        self.headers = dict([more[how]]) if how in more else {}

    def send(self, handler: BaseHTTPRequestHandler, over: Event) -> None:
        """Send it, or what the path says instead."""
        if self.how == "silent":
            over.wait(60)
        if self.how == "cut":
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(self.status)
        handler.send_header("Content-Length", str(len(self.body)))
        if self.signature:
            handler.send_header("Custody-Check-Signature", self.signature)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if self.how != "dripping":
            handler.wfile.write(self.body)
            return
        for place in range(len(self.body)):
            if over.wait(0.2):
                return
            handler.wfile.write(self.body[place : place + 1])


@contextmanager
def checking() -> Iterator[Checker]:
    """Run one."""
    checker = Checker()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            checker.note(asked)
            try:
                _Reply(self.path.strip("/"), checker, asked).send(self, checker.over)
            except OSError:
                # Nobody waits for it any more.
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        checker.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield checker
        finally:
            checker.over.set()
            server.shutdown()
            thread.join()
