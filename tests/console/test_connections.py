"""Requests that a screen gives up leave no connection half open."""

import asyncio
import gc
import warnings
from contextlib import AbstractAsyncContextManager

import httpx
import pytest

from console.wire.api_client import ApiClient

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 23\r\n\r\n{"ok":true,"data":"ab"}'
CLIENTS, QUESTIONS, MOMENTS = 12, 5, 15


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _given_up(client: ApiClient) -> None:
    """Ask several things at once and stop waiting, each time a little later."""
    for moment in range(MOMENTS):
        asked = [asyncio.ensure_future(client.get("/x", str)) for _ in range(QUESTIONS)]
        for _ in range(moment):
            await asyncio.sleep(0)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def _left_open(*, ours: bool) -> int:
    """Count the sockets that were lost."""
    server: AbstractAsyncContextManager[asyncio.Server] = await asyncio.start_server(_serve, "127.0.0.1", 0)
    # What others have lost is said here in its own name, and not counted as ours.
    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        async with server as listening:
            port = listening.sockets[0].getsockname()[1]
            for _ in range(CLIENTS):
                client = ApiClient(f"http://127.0.0.1:{port}")
                if not ours:
                    await client._http.aclose()
                    client._http = httpx.AsyncClient(base_url=client.url, trust_env=False, verify=False)
                await _given_up(client)
                await client.close()
            del client
            for _ in range(5):
                await asyncio.sleep(0)
            gc.collect()
    return sum(issubclass(one.category, ResourceWarning) for one in said)


async def test_a_cancelled_request_leaves_no_connection_open() -> None:
    assert await _left_open(ours=True) == 0


@pytest.mark.long
async def test_without_us_connections_would_be_lost() -> None:
    assert await _left_open(ours=False) > 0
