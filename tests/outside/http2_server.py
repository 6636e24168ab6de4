"""An API that speaks HTTP/2 and nothing else: what is good of it, by path, and what is broken or hostile."""

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import msgspec

from tests.outside.upstream_server import Log

NAME = "http2"
Fields = list[tuple[str, str]]
_PING, _SETTINGS, _EMPTY = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8), b"\0\0\0\x04\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\x01"
FLOODS = {"pings": _PING, "settings": _SETTINGS, "empty-data": _EMPTY}
# Heads that no server should say.
HEADS: dict[str, list[Fields]] = {
    "/interim": [[(":status", "103")]] * 1000,
    "/large-head": [[(":status", "200"), *((f"x-{n}", "a" * 1000) for n in range(200))]],
    "/line-break": [[(":status", "200"), ("x", "a\r\nset-cookie: b")]],
    "/no-status": [[("x", "a")]],
    "/two-lengths": [[(":status", "200"), ("content-length", "1"), ("content-length", "2")]],
}


def message(text: bytes, flag: int = 0) -> bytes:
    """A message of gRPC."""
    return bytes([flag]) + len(text).to_bytes(4) + text


class Http2Server:
    """One listener."""

    def __init__(self, log: Log) -> None:
        self._log, self._numbers = log, itertools.count(1)

    async def open(self, certificate: Path) -> int:
        """Listen on a free port of loopback."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.set_alpn_protocols(["h2"])
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One that offers nothing but HTTP/1.1 is sent away: Python's TLS cannot refuse it in the handshake.
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            writer.write(b"\0\0\0\x04\0\0\0\0\0")
            writer.close()
            return
        number = next(self._numbers)
        self._log.note("connection", NAME, number)
        visitor = _Visitor(writer, lambda kind, **more: self._log.note(kind, NAME, number, **more))
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            while data := await reader.read(65536):
                await visitor.hear(data)
        self._log.note("closed", NAME, number)
        writer.close()


class _Visitor:
    """One connection."""

    def __init__(self, writer: asyncio.StreamWriter, note: Callable[..., None]) -> None:
        self._writer, self._note = writer, note
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))
        self._h2.initiate_connection()
        self._asked: dict[int, dict[str, str]] = {}
        self._bodies: dict[int, bytes] = {}
        # Bytes that wait for room, and the trailers behind them.
        self._waiting: dict[int, tuple[bytes, Fields]] = {}

    async def hear(self, data: bytes) -> None:
        """Take what came."""
        for event in self._h2.receive_data(data):
            match event:
                case h2.events.RequestReceived():
                    await self._begin(event.stream_id, list(event.headers or []))
                case h2.events.DataReceived():
                    self._take(event)
                case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                    for stream in list(self._waiting):
                        self._go_on(stream)
            if getattr(event, "stream_ended", None) and event.stream_id in self._asked:
                self._answer(event.stream_id)
        await self._flush()

    async def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()

    async def _begin(self, stream: int, fields: Fields) -> None:
        asked = self._asked[stream] = dict(fields)
        self._bodies[stream] = b""
        shown = [(name, value) for name, value in fields if name[:1] != ":"]
        self._note("request", method=asked[":method"], target=asked[":path"], headers=shown)
        path = asked[":path"]
        if path.startswith("/flood/"):
            await self._flood(stream, path.removeprefix("/flood/"))
        elif path == "/talk":
            self._h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        elif path == "/garbage":
            await self._flush()
            self._writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 100)
        elif path in ("/reset", "/half"):
            if path == "/half":
                self._h2.send_headers(stream, [(":status", "200")])
                self._h2.send_data(stream, b"half")
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
        elif path == "/leave":
            self._h2.close_connection(last_stream_id=0)
        for head in HEADS.get(path, []):
            self._h2.config.validate_outbound_headers = False
            self._h2.send_headers(stream, head)

    async def _flood(self, stream: int, kind: str) -> None:
        await self._flush()
        if kind == "empty-data":
            self._h2.send_headers(stream, [(":status", "200")])
            await self._flush()
        for _ in range(4000):
            self._writer.write(FLOODS[kind] * 100)
            await self._writer.drain()

    def _take(self, event: h2.events.DataReceived) -> None:
        stream, data = event.stream_id, event.data or b""
        asked = self._asked.get(stream, {})
        if asked.get(":path") == "/deaf":
            return
        self._h2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
        if asked.get(":path") == "/talk":
            self._h2.send_data(stream, data)
        else:
            self._bodies[stream] += data

    def _answer(self, stream: int) -> None:
        asked, body = self._asked[stream], self._bodies.pop(stream, b"")
        credential = asked.get("authorization", "")
        match asked[":path"].partition("?")[0]:
            case "/echo":
                shown = [[name, value] for name, value in asked.items() if name != "authorization"]
                self._say(
                    stream,
                    {"content-type": "application/json"},
                    msgspec.json.encode({"head": shown, "size": len(body)}),
                )
            case "/talk":
                self._h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)
            case "/call":
                trailers = [
                    ("grpc-status", "0"),
                    ("grpc-message", credential),
                    ("x-service-a", "b"),
                    ("set-cookie", "c"),
                ]
                self._say(
                    stream, {"content-type": "application/grpc"}, message(b"said " + credential.encode()), trailers
                )
            case "/flagged":
                self._say(stream, {"content-type": "application/grpc"}, message(b"ab", 1), [("grpc-status", "0")])
            case "/compressed":
                self._say(stream, {"content-type": "application/grpc", "grpc-encoding": "gzip"}, b"\x01hidden")
            case "/refused":
                head = [(":status", "200"), ("grpc-status", "5"), ("grpc-message", "no " + credential)]
                self._h2.send_headers(stream, head, end_stream=True)
            case "/zeros":
                self._say(stream, {}, bytes(int(asked[":path"].partition("=")[2])))
            case "/nothing-of-ten":
                self._h2.send_headers(stream, [(":status", "200"), ("content-length", "10")], end_stream=True)
            case "/four-of-ten":
                self._say(stream, {"content-length": "10"}, b"four", [("x", "a")])
            case "/unbidden":
                self._h2.send_headers(stream, [(":status", "204")])
                self._h2.send_data(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", end_stream=True)
            case "/leave-later":
                self._say(stream, {}, b"last")
                self._h2.close_connection()
            case _:
                pass

    def _say(self, stream: int, head: dict[str, Any], body: bytes, trailers: Fields | None = None) -> None:
        self._h2.send_headers(stream, [(":status", "200"), *head.items()])
        self._waiting[stream] = body, trailers or []
        self._go_on(stream)

    def _go_on(self, stream: int) -> None:
        body, trailers = self._waiting.pop(stream)
        with contextlib.suppress(h2.exceptions.ProtocolError):
            while body:
                room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
                if room <= 0:
                    self._waiting[stream] = body, trailers
                    return
                self._h2.send_data(stream, body[:room])
                body = body[room:]
            if trailers:
                self._h2.send_headers(stream, trailers, end_stream=True)
            else:
                self._h2.end_stream(stream)
