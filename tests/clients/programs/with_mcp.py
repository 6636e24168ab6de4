"""The client of the Model Context Protocol, over streamable HTTP."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PaginatedRequestParams
from steps import BASE, KEY, UPLOADED, run, size_and_digest

HEADERS = {"Authorization": f"Bearer {KEY}"} if KEY else {}


def taking(step: Callable[[ClientSession], Awaitable[Any]]) -> Callable[[], Any]:
    """Take a step in a session of its own."""

    async def take() -> Any:
        async with (
            httpx2.AsyncClient(headers=HEADERS, timeout=60, follow_redirects=True) as http,
            streamable_http_client(f"{BASE}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return await step(session)

    return lambda: asyncio.run(take())


async def call(session: ClientSession) -> str:
    return (await session.call_tool("say", {})).content[0].text


async def stream(session: ClientSession) -> list[str]:
    words: list[str] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        words.append(message or "")

    await session.call_tool("count", {}, progress_callback=hear)
    return words


async def pages(session: ClientSession) -> list[str]:
    found, cursor = [], None
    while True:
        listed = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += [tool.name for tool in listed.tools]
        cursor = listed.next_cursor
        if not cursor:
            return found


async def download(session: ClientSession) -> object:
    return size_and_digest(base64.b64decode((await session.read_resource("file:///file")).contents[0].blob))


async def upload(session: ClientSession) -> object:
    sent = await session.call_tool("put", {"content": base64.b64encode(UPLOADED).decode()})
    size, digest = sent.content[0].text.split()
    return [int(size), digest]


run(
    {
        "call": taking(call),
        "stream": taking(stream),
        "pages": taking(pages),
        "download": taking(download),
        "upload": taking(upload),
    }
)
