"""Serves every API on loopback, each at a port of its own, until it is told to stop."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import msgspec

from tests.clients.apis import served
from tests.outside.certificates import NAMES, Authority
from tests.outside.processes import READY
from tests.outside.upstream_server import Desk, Log, Server


async def _serve(folder: Path) -> None:
    authority, desk, log = Authority(folder), Desk(), Log(folder / "log")
    good = authority.leaf("good", *NAMES)
    ports = {api.name: await Server(api.name, api, desk, log).open(good) for api in served.APIS}
    control = await asyncio.start_server(desk.serve, "127.0.0.1", 0)
    ports |= {"control": control.sockets[0].getsockname()[1], "main": ports["web"]}
    (folder / "ports").write_bytes(msgspec.json.encode(ports))
    print(f"{READY}localhost:{ports['main']}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(Path(sys.argv[1])))
