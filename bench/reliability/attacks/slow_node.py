"""A node of a chain that answers eight requests at a time, each after 5 ms: what looks first is served first."""

import asyncio

import msgspec

from tests.outside.holding_node import RESULTS

AT_ONCE, SECONDS = 8, 0.005


async def serve() -> None:
    """Listen until ended."""
    places = asyncio.Semaphore(AT_ONCE)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                asked = msgspec.json.decode(await reader.readexactly(int(length.partition(b":")[2])))
                several = asked if isinstance(asked, list) else [asked]
                async with places:
                    await asyncio.sleep(SECONDS)
                told = [{"jsonrpc": "2.0", "id": one["id"], "result": RESULTS.get(one["method"])} for one in several]
                body = msgspec.json.encode(told if isinstance(asked, list) else told[0])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
