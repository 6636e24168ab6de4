"""A node that answers whatever a test tells it to, to every request."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec


class BadNode:
    """A node that answers badly: its address, its answers, and the questions that it got."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.status = 200
        self.body = b"{}"
        self.results: dict[str, object] | None = None
        self.asked: list[object] = []
        # What arrived, answered or not.
        self.heard: list[bytes] = []
        self.silent = threading.Event()
        self.silent.set()

    def answer(self, content: bytes) -> bytes:
        """The canned body, or an answer for each question out of `results`; an absent one does not exist."""
        request = msgspec.json.decode(content)
        self.asked.append(request)
        if self.results is None:
            return self.body
        if isinstance(request, list):
            return msgspec.json.encode([self._one(item) for item in request])
        return msgspec.json.encode(self._one(request))

    def _one(self, item: dict[str, object]) -> dict[str, object]:
        name = str(item["method"])
        if self.results is None or name not in self.results:
            return {"jsonrpc": "2.0", "id": item["id"], "error": {"code": -32601, "message": "no such method"}}
        return {"jsonrpc": "2.0", "id": item["id"], "result": self.results[name]}


@contextmanager
def running_bad_node() -> Iterator[BadNode]:
    """Start one in this process."""

    class Connection(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            node.heard.append(content)
            node.silent.wait()
            # A caller that waited long enough has hung up.
            with suppress(ConnectionError):
                self.send_response(node.status)
                self.end_headers()
                self.wfile.write(node.answer(content))

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        node = BadNode(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield node
        finally:
            node.silent.set()
            server.shutdown()
            thread.join()
