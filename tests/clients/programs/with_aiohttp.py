"""aiohttp, as services use it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from steps import BASE, FILE, KEY, PARTS, UPLOADED, of_file, run
from yarl import URL

PART = 8 * 2**20
Taken = Callable[[aiohttp.ClientSession], Awaitable[Any]]


def taking(step: Taken) -> Callable[[], Any]:
    """Take a step in a session of its own."""

    async def take() -> Any:
        # It reads HTTPS_PROXY only when it is told to.
        headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
        async with aiohttp.ClientSession(headers=headers, trust_env=True) as session:
            return await step(session)

    return lambda: asyncio.run(take())


async def call(session: aiohttp.ClientSession) -> str:
    async with session.get(f"{BASE}/call", raise_for_status=True) as answer:
        return (await answer.json())["said"]


async def stream(session: aiohttp.ClientSession) -> list[str]:
    async with session.get(f"{BASE}/stream", raise_for_status=True) as answer:
        lines = [line.decode().removesuffix("\n") async for line in answer.content]
    return [line.removeprefix("data: ") for line in lines if line]


async def pages(session: aiohttp.ClientSession) -> list[str]:
    found, url = [], f"{BASE}/items"
    while url:
        async with session.get(url, raise_for_status=True) as answer:
            found += [str(item["id"]) for item in await answer.json()]
            url = answer.links.get("next", {}).get("url")
    return found


async def folder(session: aiohttp.ClientSession) -> str:
    async with session.get(URL(f"{BASE}/names/a%2Fb", encoded=True), raise_for_status=True) as answer:
        return (await answer.json())["said"]


async def download(session: aiohttp.ClientSession) -> object:
    async with session.get(f"{BASE}/file", raise_for_status=True) as answer:
        with FILE.open("wb") as file:
            async for piece in answer.content.iter_chunked(2**20):
                file.write(piece)
    return of_file()


def in_parts(base: str) -> Taken:
    async def take_parts(session: aiohttp.ClientSession) -> object:
        async with session.head(f"{base}/file") as answer:
            size = int(answer.headers["Content-Length"])
        with FILE.open("wb") as file:
            for first in range(0, size, PART):
                part = {"Range": f"bytes={first}-{min(first + PART, size) - 1}"}
                async with session.get(f"{base}/file", headers=part, raise_for_status=True) as answer:
                    file.write(await answer.read())
        return of_file()

    return take_parts


async def upload(session: aiohttp.ClientSession) -> object:
    async with session.put(f"{BASE}/upload", data=UPLOADED) as answer:
        return await answer.json()


async def busy(session: aiohttp.ClientSession) -> object:
    async with session.get(f"{BASE}/busy") as answer:
        return [answer.status, answer.headers["Retry-After"]]


run(
    {
        "call": taking(call),
        "stream": taking(stream),
        "pages": taking(pages),
        "folder": taking(folder),
        "download": taking(download),
        "parts": taking(in_parts(PARTS)),
        "no parts": taking(in_parts(BASE)),
        "upload": taking(upload),
        "busy": taking(busy),
    }
)
