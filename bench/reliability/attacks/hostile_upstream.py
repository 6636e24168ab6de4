"""An HTTPS server that answers as an attacker would: `python -m bench.reliability.attacks.hostile_upstream PEM`.

The last part of the path says how: `small`, `large`, `type`, `chunks`, `hints`, `websocket`, `upload`.
"""

import asyncio
import base64
import contextlib
import hashlib
import os
import ssl
import sys

_ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection."""
    with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            how = head.split(b" ", 2)[1].rpartition(b"/")[2]
            if how == b"type":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=" + b" " * 40_000 + b"x\r\n")
                writer.write(b"Content-Length: 2\r\n\r\nok")
            elif how == b"chunks":
                writer.write(_ENDLESS)
                await _repeat(writer, b"1\r\nx\r\n" * 4_000)
            elif how == b"hints":
                await _repeat(writer, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500)
            elif how == b"large":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16777216\r\n\r\n")
                for _ in range(256):
                    writer.write(b"x" * 65_536)
                    await writer.drain()
            elif how == b"websocket":
                await _accept(head, reader, writer)
            elif how in {b"upload", b"into-body"}:
                while await reader.read(2**16):
                    pass
                return
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    writer.close()


async def _repeat(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()


async def _accept(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    key = next(line.split(b": ", 1)[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    assert b"upgrade" in lines
    accept = base64.b64encode(hashlib.sha1(key.strip() + _GUID, usedforsecurity=False).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while await reader.read(2**16):
        pass


async def serve(certificate: str) -> None:
    """Listen until ended."""
    # An attacker's machine is not ours: it takes nothing of it that the service wants.
    os.nice(19)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context, limit=2**17, backlog=1024)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
