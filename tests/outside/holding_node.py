"""A node that holds back what is asked about some addresses until it is told otherwise, and knows how much it holds."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

RESULTS: dict[str, object] = {
    "eth_chainId": "0x7a69",
    "eth_getTransactionCount": "0x5",
    "eth_getBalance": hex(10**18),
    "eth_maxPriorityFeePerGas": "0x3b9aca00",
    "eth_getBlockByNumber": {"baseFeePerGas": "0x3b9aca00"},
    "eth_gasPrice": "0x3b9aca00",
    "eth_estimateGas": "0x5208",
    "eth_getTransactionByHash": None,
    "eth_sendRawTransaction": "0x" + "12" * 32,
}


class HoldingNode:
    """A node that holds questions: its address, whose questions, and how many it holds and held at most."""

    def __init__(self) -> None:
        self.url = ""
        self.held = self.most = self.asked = 0
        self.sent: list[str] = []
        self._about: frozenset[str] = frozenset()
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()

    def hold(self, *addresses: str) -> None:
        """Hold back what is asked about these from now on."""
        self.most, self._about = 0, frozenset(address.lower() for address in addresses)
        self._loop.call_soon_threadsafe(self._released.clear)

    def release(self) -> None:
        """Answer everything."""
        self._about = frozenset()
        self._loop.call_soon_threadsafe(self._released.set)

    async def serve(self, ready: threading.Event, ended: asyncio.Event) -> None:
        """Listen until the end."""
        async with await asyncio.start_server(self._connection, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await ended.wait()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Loop on which it runs."""
        return self._loop

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                content = await reader.readexactly(int(length.partition(b":")[2]))
                if any(address in content.decode().lower() for address in self._about):
                    await self._hold(reader)
                body = self._answer(content)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        """Wait for the release, or for the other side to hang up: nothing else comes before the answer."""
        self.held += 1
        waits = [asyncio.ensure_future(self._released.wait()), asyncio.ensure_future(reader.read(1))]
        # Who hung up before this one came may be heard after it: the loop takes some turns to tell.
        for _ in range(20):
            await asyncio.sleep(0)
        self.most = max(self.most, self.held)
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        self.held -= 1
        for one in pending:
            one.cancel()
        await asyncio.wait(waits)
        if waits[1] in done:
            raise ConnectionError

    def _answer(self, content: bytes) -> bytes:
        asked = msgspec.json.decode(content)
        several = asked if isinstance(asked, list) else [asked]
        self.asked += len(several)
        self.sent += [one["params"][0] for one in several if one["method"] == "eth_sendRawTransaction"]
        told = [{"jsonrpc": "2.0", "id": one["id"], "result": RESULTS.get(one["method"], "0x")} for one in several]
        return msgspec.json.encode(told if isinstance(asked, list) else told[0])


@contextmanager
def running_holding_node() -> Iterator[HoldingNode]:
    """Start one in this process."""
    node, ready, ended = HoldingNode(), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=node.loop.run_until_complete, args=(node.serve(ready, ended),))
    thread.start()
    assert ready.wait(60)
    try:
        yield node
    finally:
        node.release()
        node.loop.call_soon_threadsafe(ended.set)
        thread.join()
        node.loop.close()
