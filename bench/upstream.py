"""The API behind the proxy, as cheap as it can be: TLS, keep-alive, and answers that were made beforehand.

The last part of the path says which: `small`, `large`, `upload`, `events` (as fast as they go), `paced`, and `steady`,
a MB a second without an end.
"""

import asyncio
import signal
import ssl
import sys
import time
from collections.abc import Callable

import msgspec
import uvloop

EVENTS = 100
PACE_SECONDS = 0.002
LARGE = 2**20
STEADY_BYTES, STEADY_SECONDS = 50_000, 0.05


class _Visitor(asyncio.Protocol):
    """One connection; requests have a content-length or no body."""

    def __init__(self) -> None:
        self._received = b""
        self._missing = 0
        self._answer: Callable[[], None] = self._small

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            data = self._received + data
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                self._received = data
                return
            self._received = b""
            self._read(data[:end])
            self._missing -= len(data) - end
        if not self._missing:
            self._answer()

    def _read(self, head: bytes) -> None:
        name = head.split(b" ", 2)[1].rpartition(b"/")[2]
        self._answer = {b"large": self._large, b"events": self._events, b"paced": self._pace}.get(name, self._small)
        if name == b"steady":
            self._answer = self._steady
        lower = head.lower()
        at = lower.find(b"content-length: ")
        self._missing = int(lower[at + 16 : lower.index(b"\r", at)]) if at >= 0 else 0

    def _small(self) -> None:
        self._transport.write(_SMALL_ANSWER)

    def _large(self) -> None:
        self._transport.write(_LARGE_ANSWER)

    def _events(self) -> None:
        self._transport.write(_EVENTS_HEAD)
        self._event(EVENTS, 0.0)

    def _pace(self) -> None:
        self._transport.write(_EVENTS_HEAD)
        self._event(EVENTS, PACE_SECONDS)

    def _steady(self) -> None:
        self._transport.write(_EVENTS_HEAD)
        self._more(asyncio.get_running_loop().time())

    def _more(self, due: float) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_STEADY)
        # By the clock, so that what was late is made up for.
        asyncio.get_running_loop().call_at(due + STEADY_SECONDS, self._more, due + STEADY_SECONDS)

    def _event(self, left: int, pause: float) -> None:
        if self._transport.is_closing():
            return
        # This clock is the same in every process of a machine, so the reader can tell how old an event is.
        text = b"data: %d\n\n" % time.monotonic_ns()
        self._transport.write(b"%x\r\n%s\r\n%s" % (len(text), text, b"" if left > 1 else b"0\r\n\r\n"))
        if left > 1:
            asyncio.get_running_loop().call_later(pause, self._event, left - 1, pause)


def _whole(body: bytes, kind: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (kind, len(body), body)


_SMALL_ANSWER = _whole(msgspec.json.encode({"id": "chatcmpl-1", "text": "x" * 219}), b"application/json")
# Letters, not zeros: what is masked is looked for in every byte of it.
_LARGE_ANSWER = _whole((b"The quick brown fox jumps over the lazy dog. " * (LARGE // 45 + 1))[:LARGE], b"text/plain")
_STEADY = b"%x\r\n%s\r\n" % (STEADY_BYTES, (b"The quick brown fox jumps over the lazy dog. " * 1112)[:STEADY_BYTES])
_EVENTS_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _serve(certificate: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["http/1.1"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Visitor, "127.0.0.1", 0, ssl=context)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    print(f"listening on localhost:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
