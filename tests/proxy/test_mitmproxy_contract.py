"""The parts of mitmproxy that we rely on. A version that changes any of them must be read before it is taken."""

import inspect
import tomllib
from importlib.metadata import version
from typing import Any

import h11
import mitmproxy.proxy.layers.http as http_layers
import pytest
from h11._receivebuffer import ReceiveBuffer as h11_buffer
from mitmproxy import connection, http, options, tls
from mitmproxy.net import tls as net_tls
from mitmproxy.net.http import http1, status_codes, validate
from mitmproxy.proxy import commands, context, events, layer, mode_specs, server, tunnel, utils
from mitmproxy.proxy.layers import tls as tls_layers
from mitmproxy.proxy.layers.http import _events, _hooks, _http1

from tests.outside.processes import PROJECT

# What we call or replace, and the parameters it must have, in their order.
SIGNATURES: dict[Any, str] = {
    server.LiveConnectionHandler.__init__: "self reader writer options mode",
    server.ConnectionHandler.handle_connection: "self connection",
    server.ConnectionHandler.handle_client: "self",
    server.ConnectionHandler.server_event: "self event",
    server.ConnectionHandler.open_connection: "self command",
    server.ConnectionHandler.close_connection: "self connection half_close",
    server.ConnectionHandler.drain_writers: "self",
    server.ConnectionHandler.handle_hook: "self hook",
    server.ConnectionIO.__init__: "self handler reader writer",
    mode_specs.ProxyMode.parse: "spec",
    http_layers.HttpLayer.__init__: "self context mode",
    http_layers.HttpLayer._handle_event: "self event",
    http_layers.HttpLayer.make_stream: "self stream_id",
    http_layers.HttpLayer.get_connection: "self event reuse",
    http_layers.HttpLayer.event_to_child: "self child event",
    http_layers.HttpStream.__init__: "self context stream_id",
    http_layers.HttpStream.state_wait_for_request_headers: "self event",
    http_layers.HttpStream.state_stream_request_body: "self event",
    http_layers.HttpStream.state_consume_request_body: "self event",
    http_layers.HttpStream.state_wait_for_response_headers: "self event",
    http_layers.HttpStream.state_stream_response_body: "self event",
    http_layers.HttpStream.state_done: "self _",
    http_layers.HttpStream.state_errored: "self _",
    http_layers.HttpStream.make_server_connection: "self",
    http_layers.HttpStream.flow_done: "self",
    http_layers.HttpStream.check_killed: "self emit_error_hook",
    http_layers.HttpStream.handle_protocol_error: "self event",
    http_layers.HttpStream.handle_connect_finish: "self",
    http_layers.HttpStream.passthrough: "self event",
    http_layers.GetHttpConnection.__init__: "self address tls via transport_protocol",
    http_layers.HttpClient._handle_event: "self event",
    _http1.Http1Server.__init__: "self context",
    _http1.Http1Server.read_headers: "self event",
    _http1.Http1Server.mark_done: "self request response",
    _http1.Http1Client.__init__: "self context",
    _http1.Http1Client.read_headers: "self event",
    _http1.Http1Connection.read_body: "self event",
    _http1.Http1Connection.wait: "self event",
    _http1.Http1Connection.done: "self event",
    _http1.make_body_reader: "expected_size",
    http1.read_request_head: "lines",
    http1.read_response_head: "lines",
    http1.expected_http_body_size: "request response",
    validate.validate_headers: "message",
    tunnel.LayerStack.__truediv__: "self other",
    tls_layers.starts_like_tls_record: "d",
    h11_buffer.maybe_extract_lines: "self",
    h11_buffer.is_next_line_obviously_invalid_request_line: "self",
    layer.NextLayer.data_client: "self",
    http.HTTPFlow.__init__: "self client_conn server_conn live",
    http.Response.__init__: (
        "self http_version status_code reason headers content trailers timestamp_start timestamp_end"
    ),
}
# Hooks by the names that ours are listed under.
HOOKS = {
    "requestheaders": _hooks.HttpRequestHeadersHook,
    "request": _hooks.HttpRequestHook,
    "responseheaders": _hooks.HttpResponseHeadersHook,
    "http_connect": _hooks.HttpConnectHook,
    "next_layer": layer.NextLayerHook,
    "tls_clienthello": tls_layers.TlsClienthelloHook,
    "tls_start_client": tls_layers.TlsStartClientHook,
    "tls_start_server": tls_layers.TlsStartServerHook,
    "tls_failed_server": tls_layers.TlsFailedServerHook,
}


def test_the_version_is_the_one_that_was_read() -> None:
    wanted = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]

    assert [line for line in wanted if line.startswith("mitmproxy")] == [f"mitmproxy=={version('mitmproxy')}"]
    assert version("mitmproxy") == "12.2.3"


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_a_signature(function: Any) -> None:
    assert " ".join(inspect.signature(function).parameters) == SIGNATURES[function]


@pytest.mark.parametrize("name", HOOKS)
def test_a_hooks_name(name: str) -> None:
    assert HOOKS[name].name == name


def made_context() -> context.Context:
    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2), timestamp_start=0)
    return context.Context(client, options.Options())


def test_the_layer_keeps_what_we_look_into() -> None:
    made = http_layers.HttpLayer(made_context(), http_layers.HTTPMode.regular)

    assert made.streams == {}
    assert made.command_sources == {}
    assert dict(made.waiting_for_establishment) == {}
    # Empty until the start, when we put our own parser there.
    assert made.connections == {}
    assert "Http1Server(self.context.fork())" in inspect.getsource(http_layers.HttpLayer._handle_event)


def test_a_stream_keeps_what_we_set() -> None:
    made = http_layers.HttpStream(made_context(), 1)

    assert made.client_state == made.state_uninitialized
    assert made.server_state == made.state_uninitialized
    assert made.child_layer is None
    assert isinstance(made.request_body_buf, utils.ReceiveBuffer)


def test_the_parsers_keep_what_we_set() -> None:
    for kind in (_http1.Http1Server, _http1.Http1Client):
        made = kind(made_context())
        assert isinstance(made.buf, h11_buffer)
        assert (made.request, made.response, made.request_done, made.response_done) == (None, None, False, False)
        assert made.stream_id == (1 if kind is _http1.Http1Server else None)
        assert made.state == made.start
        assert made.conn is not None
    assert _http1.Http1Server.ReceiveData is _events.RequestData
    assert _http1.Http1Client.ReceiveData is _events.ResponseData
    assert _http1.Http1Server.ReceiveEndOfMessage is _events.RequestEndOfMessage
    assert _http1.Http1Client.ReceiveEndOfMessage is _events.ResponseEndOfMessage


@pytest.mark.parametrize(
    ("size", "reader"), [(0, "ContentLengthReader"), (None, "ChunkedReader"), (-1, "Http10Reader")]
)
def test_a_body_reader(size: int | None, reader: str) -> None:
    made = _http1.make_body_reader(size)

    assert type(made).__name__ == reader
    assert made.read_eof


def test_the_body_readers_raise_what_we_catch() -> None:
    with pytest.raises(h11.ProtocolError):
        _http1.make_body_reader(5).read_eof()


def test_the_commands_are_the_ones_that_the_handler_obeys() -> None:
    known = {"SendData", "OpenConnection", "CloseConnection", "CloseTcpConnection", "StartHook", "Log", "RequestWakeup"}
    found = {
        name
        for name, kind in vars(commands).items()
        if inspect.isclass(kind) and issubclass(kind, commands.Command) and kind.__module__ == commands.__name__
    }

    assert found - {"Command", "ConnectionCommand"} == known


def test_the_other_names_are_there() -> None:
    names = {"HookCompleted", "OpenConnectionCompleted", "ConnectionClosed", "DataReceived", "Start"}
    assert names <= set(vars(events))
    assert {"GENERIC_CLIENT_ERROR", "GENERIC_SERVER_ERROR"} <= set(_events.ErrorCode.__members__)
    assert {"DropStream", "SendHttp", "RegisterHttpConnection"} <= set(vars(http_layers))
    assert {"CAN_READ", "CAN_WRITE", "OPEN", "CLOSED"} <= set(connection.ConnectionState.__members__)
    assert set(http_layers.HTTPMode.__members__) >= {"regular", "transparent"}
    assert isinstance(net_tls.DEFAULT_OPTIONS, int)
    assert status_codes.RESPONSES[502] == "Bad Gateway"
    assert {"conn", "context", "ssl_conn"} <= set(tls.TlsData.__dataclass_fields__)
    assert {"ServerTLSLayer", "ClientTLSLayer"} <= set(vars(tls_layers))
    assert {"host", "port", "method", "scheme", "authority", "path", "headers", "content"} <= set(
        http.RequestData.__dataclass_fields__
    )
