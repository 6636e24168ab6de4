"""A node behind which a real one stands: it passes everything on, but for what a test makes it lie about."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tests.outside import loopback

# Given the method, its parameters and the true result; gives the result to tell.
Lie = Callable[[str, list[Any], Any], Any]


class LyingNode:
    """A node that lies: its address, its lies, and the questions that it got."""

    def __init__(self, address: str, truth: str) -> None:
        self.url = f"http://{address}"
        self._truth, self._http = truth, loopback.client(timeout=20)
        self.be_honest()

    def be_honest(self) -> None:
        """Forget every lie, and everything asked."""
        self.lie: Lie = lambda method, params, result: result
        self.status = 200
        self.takes_batches = True
        # What it keeps to itself although it says that it took it.
        self.swallows: set[str] = set()
        # What it does not answer while this is set.
        self.stalls_on = ""
        self.stalled, self.go_on = threading.Event(), threading.Event()
        self.asked: list[tuple[str, list[Any]]] = []

    def count(self, method: str) -> int:
        """Count how often something was asked."""
        return sum(1 for asked, _ in self.asked if asked == method)

    def answer(self, content: bytes) -> bytes:
        """The answer to a request or a batch."""
        request = msgspec.json.decode(content)
        if not isinstance(request, list):
            return msgspec.json.encode(self._one(request))
        if not self.takes_batches:
            refusal = {"code": -32600, "message": "batches are not served"}
            return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": refusal})
        return msgspec.json.encode([self._one(item) for item in request])

    def _one(self, item: dict[str, Any]) -> dict[str, Any]:
        method, params = item["method"], item.get("params", [])
        self.asked.append((method, params))
        if method == self.stalls_on:
            self.stalled.set()
            self.go_on.wait(20)
        if method in self.swallows:
            return {"jsonrpc": "2.0", "id": item["id"], "result": "taken"}
        told = self._http.post(self._truth, json=item).json()
        if "error" in told:
            return told
        return told | {"result": self.lie(method, params, told["result"])}

    def close(self) -> None:
        """Let go of the real one."""
        self.go_on.set()
        self._http.close()


@contextmanager
def running_lying_node(truth: str) -> Iterator[LyingNode]:
    """Start one in this process, in front of the node at an address."""

    class Connection(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            body = node.answer(content) if node.status == 200 else b"{}"
            try:
                self.send_response(node.status)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                # The caller is gone: killed, perhaps, which is why we stalled.
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        node = LyingNode(f"127.0.0.1:{server.server_address[1]}", truth)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield node
        finally:
            node.close()
            server.shutdown()
            thread.join()
