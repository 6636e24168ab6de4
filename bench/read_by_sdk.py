"""The client for Python beside httpx: prints times of pairs, as `bench.clients` asks."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import httpx
from custody_sdk import AsyncVault, Vault

URL, TOKEN, AGENT, TX = sys.argv[1:]
PATH = f"{URL}/vault/{AGENT}/transactions/{TX}"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def measure(call: Callable[[], object]) -> float:
    """Milliseconds of a call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


async def measure_on_a_loop(call: Awaitable[object]) -> float:
    """Milliseconds of a call that is awaited."""
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


async def main() -> None:
    """Answer each line of input, a number of pairs, with times of so many."""
    with Vault(URL, TOKEN, agent=AGENT) as vault, httpx.Client() as bare:
        async with AsyncVault(URL, TOKEN, agent=AGENT) as on_a_loop, httpx.AsyncClient() as bare_on_a_loop:

            async def read() -> object:
                return (await bare_on_a_loop.get(PATH, headers=HEADERS)).json()

            print("ready", flush=True)
            while line := sys.stdin.readline():
                one, other = [], []
                for _ in range(int(line)):
                    one.append(
                        (
                            measure(lambda: bare.get(PATH, headers=HEADERS).json()),
                            measure(lambda: vault.transaction(TX)),
                        )
                    )
                    other.append((await measure_on_a_loop(read()), await measure_on_a_loop(on_a_loop.transaction(TX))))
                print(json.dumps({"Python, sync": one, "Python, async": other}), flush=True)


asyncio.run(main())
