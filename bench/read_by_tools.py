"""Tools that read, beside the requests that they make: prints times of pairs, as `bench.clients` asks.

Run by the MCP server's interpreter: the client is the protocol's own.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN, AGENT, TX, SERVER = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
# A tool, what it is given, and the requests that it makes in turn.
READS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "get_payment": ({"transaction_id": TX}, (f"/vault/{AGENT}/transactions/{TX}",)),
    "wallet_status": ({}, (f"/agents/{AGENT}", f"/dashboard/{AGENT}")),
}


def by_stdio() -> Any:
    """A server of the client's own."""
    here = {name: value for name, value in os.environ.items() if name.startswith(("SERVICE_", "PYTHON", "PATH"))}
    return stdio_client(StdioServerParameters(command=sys.executable, args=["-P", "-m", "mcp_server"], env=here))


def by_http() -> Any:
    """The server that listens for all."""
    return streamable_http_client(SERVER, http_client=httpx2.AsyncClient(headers=HEADERS, timeout=60))


async def measure(call: Awaitable[object]) -> float:
    """Milliseconds of a call."""
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


async def main() -> None:
    """Answer each line of input, a number of pairs, with times of so many."""
    async with AsyncExitStack() as stack:
        bare = await stack.enter_async_context(httpx.AsyncClient())
        clients = {
            "stdio": await stack.enter_async_context(Client(by_stdio(), mode="2026-07-28")),
            "HTTP": await stack.enter_async_context(Client(by_http(), mode="2026-07-28")),
            "HTTP of 2025": await stack.enter_async_context(Client(by_http(), mode="legacy")),
        }

        async def ask(paths: tuple[str, ...]) -> None:
            for path in paths:
                (await bare.get(URL + path, headers=HEADERS)).json()

        async def call(client: Client, tool: str, given: dict[str, Any]) -> None:
            assert not (await client.call_tool(tool, given)).is_error

        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            found: dict[str, list[tuple[float, float]]] = {}
            for _ in range(int(line)):
                for how, client in clients.items():
                    for tool, (given, paths) in READS.items():
                        pair = (await measure(ask(paths)), await measure(call(client, tool, given)))
                        found.setdefault(f"{tool} by {how}", []).append(pair)
            print(json.dumps(found), flush=True)


asyncio.run(main())
