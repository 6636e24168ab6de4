"""JSON-RPC 2.0 over HTTP on loopback: single requests and batches, one at a time."""

import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

Method = Callable[..., Any]
MAX_REQUEST_BYTES = 1024 * 1024
METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS, SERVER_ERROR = -32601, -32600, -32602, -32000


class RpcFailure(Exception):
    """The answer of a method that cannot do what was asked."""

    def __init__(self, message: str, code: int = SERVER_ERROR, data: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class JsonRpcServer(ThreadingHTTPServer):
    """Serves a table of methods. A lock lets one method run at a time: the state behind them has no other guard."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, methods: Mapping[str, Method]) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self._methods = methods
        self._one_at_a_time = threading.Lock()

    @property
    def address(self) -> str:
        """The host and port where it listens."""
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hung up, which is its right; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, body: bytes) -> Any:
        """Answer a request or a batch."""
        try:
            request = msgspec.json.decode(body)
        except msgspec.MsgspecError:
            return _failure(None, RpcFailure("not JSON", INVALID_REQUEST))
        if isinstance(request, list):
            return [self._one(item) for item in request]
        return self._one(request)

    def _one(self, request: Any) -> dict[str, Any]:
        if not isinstance(request, dict) or not isinstance(request.get("params", []), list):
            return _failure(None, RpcFailure("not a JSON-RPC request", INVALID_REQUEST))
        name, id_ = request.get("method"), request.get("id")
        method = self._methods.get(str(name))
        if method is None:
            return _failure(id_, RpcFailure(f"the method {name} does not exist", METHOD_NOT_FOUND))
        try:
            with self._one_at_a_time:
                return {"jsonrpc": "2.0", "id": id_, "result": method(*request.get("params", []))}
        except RpcFailure as failure:
            return _failure(id_, failure)
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            return _failure(id_, RpcFailure(f"invalid parameters: {problem}", INVALID_PARAMS))


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet; else the client's delayed acknowledgement costs 40 ms a request.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: JsonRpcServer

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_REQUEST_BYTES:
            self.close_connection = True
            self._respond(413, b"{}")
            return
        self._respond(200, msgspec.json.encode(self.server.answer(self.rfile.read(length))))

    def _respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet: the walk-through prints what matters."""


def _failure(id_: Any, failure: RpcFailure) -> dict[str, Any]:
    error: dict[str, Any] = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        error["data"] = failure.data
    return {"jsonrpc": "2.0", "id": id_, "error": error}
