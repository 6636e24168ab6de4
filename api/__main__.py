"""Start the api: `python -m api`; `--openapi` prints the contract instead, or another form of it by its path."""

import asyncio
import faulthandler
import os
import signal
import socket
import sys
from typing import Any

import msgspec
import uvloop
from sanic.application.state import ApplicationServerInfo
from sanic.http.constants import HTTP

from api import app as wiring
from api import settings
from api.http import openapi
from api.routes import endpoints
from custody.chains import built_in, families
from custody.kit import garbage, logs
from custody.kit.poolers import ForgetfulPooler

log = logs.logger("api")
# Requests under way have this long when we are told to stop; a signature takes a hundredth of it.
STOP_SECONDS = 15.0
# The rest of a stop has its own bounds, nine seconds in all. One that hangs all the same says where it does (files and
# lines, never values), and is over, before who started us kills us and nobody knows.
TELL_SECONDS, OVER_SECONDS = 24.5, 25.0
_LOOK_SECONDS = 0.02


async def serve(given: settings.Settings) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests end."""
    app = await wiring.build(given)
    # Told that it speaks one version of HTTP, the server leaves out the `alt-svc` header, which would be empty.
    app.state.server_info.append(ApplicationServerInfo(settings={"version": HTTP.VERSION_1, "port": given.port}))
    server = await app.create_server(sock=_listener(given), return_asyncio_server=True, access_log=False)
    assert server is not None  # noqa: S101 - create_server gives one when asked to
    await server.startup()  # type: ignore[no-untyped-call]
    await server.before_start()  # type: ignore[no-untyped-call]
    await server.start_serving()  # type: ignore[no-untyped-call]
    await server.after_start()  # type: ignore[no-untyped-call]
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log.info("serving", extra={"host": given.host, "port": given.port})
    await stop.wait()
    # On shutdown: first /ready answers 503, then new connections are refused, then running requests finish.
    app.ctx.leaving.set()
    await asyncio.sleep(given.drain_seconds)
    asyncio.get_running_loop().call_later(TELL_SECONDS, _tell_what_hangs)
    faulthandler.dump_traceback_later(OVER_SECONDS, exit=True)
    # The library says that there is none, for it means the time before it serves.
    listening: Any = server.server
    listening.close()
    await server.before_stop()  # type: ignore[no-untyped-call]
    await _close(server.connections)
    await server.after_stop()  # type: ignore[no-untyped-call]


def _tell_what_hangs() -> None:
    for task in asyncio.all_tasks():
        places, waits = [], task.get_coro()
        while (frame := getattr(waits, "cr_frame", None)) is not None:
            places.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
            waits = getattr(waits, "cr_await", None)
        log.warning("the stop waits", extra={"task": task.get_name(), "at": places})


async def _close(connections: set[Any]) -> None:
    """Close every connection as soon as it has no request under way, and those that take too long."""
    deadline = asyncio.get_running_loop().time() + STOP_SECONDS
    while connections and asyncio.get_running_loop().time() < deadline:
        for connection in list(connections):
            connection.close_if_idle()
        await asyncio.sleep(_LOOK_SECONDS)
    for connection in list(connections):
        connection.abort()


def _listener(given: settings.Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in given.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if given.workers > 1:
        # The kernel spreads connections over the workers of one port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((given.host, given.port))
    return listener


def main() -> None:
    """The process."""
    families.hand_in(built_in.LISTED)
    if sys.argv[1:2] == ["--openapi"]:
        form = (*sys.argv[2:], openapi.CONTRACT)[0]
        document = openapi.documents(endpoints(), "http://localhost:3200")[form]
        print(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
        return
    logs.set_up()
    try:
        given = settings.read()
    except ValueError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(os.EX_CONFIG)
    garbage.look_rarely()
    try:
        uvloop.run(serve(given))
    except ForgetfulPooler as problem:
        sys.exit(f"api: {problem}")


if __name__ == "__main__":
    main()
