"""The proxy with a resolver that never answers for names below `slow.test`, as a silent name server would."""

import asyncio
import time

from custody.kit import authority, logs, resolver
from proxy_addon import settings
from proxy_addon.__main__ import serve

# As long as the system waits for a silent server before it asks again.
SILENT_SECONDS = 10.0
_system = resolver.socket.getaddrinfo


def _silent(host: str, *given: object, **more: object) -> object:
    if isinstance(host, str) and host.endswith(".slow.test"):
        time.sleep(SILENT_SECONDS)  # it holds a thread, as the system's resolver does
    return _system(host, *given, **more)  # type: ignore[arg-type]


if __name__ == "__main__":
    logs.set_up()
    resolver.socket.getaddrinfo = _silent  # type: ignore[assignment]
    given = settings.read()
    authority.ensure(given.ca_file, given.ca_key_file, None)
    asyncio.run(serve(given))
