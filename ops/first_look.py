"""The needs of a first start on this machine, checked before anything is installed or written: ports and room.

`scripts/set-up --for-run` runs this file with whatever Python it found, so it needs the standard library alone.
"""

import errno
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

# What a fresh state folder takes until all is ready, and what the packages take; each with some to spare.
_HOME_BYTES = 400 * 2**20
_PACKAGES_BYTES = 900 * 2**20
# The other listeners, by how far from the api's port each lies where a port was chosen for that alone.
FOLLOWING = {
    "SERVICE_PROXY_PORT": (8080, 80),
    "SERVICE_METRICS_PORT_API": (3290, 90),
    "SERVICE_METRICS_PORT_PROXY": (3291, 91),
    "SERVICE_METRICS_PORT_SCHEDULER": (3292, 92),
}
_API = ("SERVICE_API_PORT", 3200)
_HIGHEST = 65_535
_TROUBLE = {errno.EADDRINUSE, errno.EACCES, errno.EPERM}


def following(environment: Mapping[str, str]) -> dict[str, str]:
    """The ports that go with a chosen SERVICE_API_PORT, but for those that were chosen too; in development alone."""
    chosen = environment.get(_API[0], "").strip()
    if environment.get("SERVICE_ENV", "").strip() == "production" or not (chosen.isascii() and chosen.isdecimal()):
        return {}
    port = int(chosen)
    if port in (0, _API[1]) or port > _HIGHEST:
        return {}
    way = 1 if port + 92 <= _HIGHEST else -1
    found = {name: str(port + way * distance) for name, (_, distance) in FOLLOWING.items()}
    return {name: value for name, value in found.items() if not environment.get(name, "").strip()}


def unusable(listeners: Iterable[tuple[str, str, int]]) -> list[tuple[str, int | None]]:
    """Of listeners (variable, host, port) those that cannot be: a sentence with its cure, and the system's number."""
    refused: list[tuple[str, int | None]] = []
    with ExitStack() as held:
        for name, host, port in listeners:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                # Held until the last is tried, because two of our own may have been given the same port.
                held.enter_context(socket.create_server((host, port), family=family))
            except OSError as problem:
                # Python adds the address; a name that does not resolve has no number of the system's.
                known = problem.errno in _TROUBLE
                reason = os.strerror(problem.errno) if known and problem.errno else problem.strerror or str(problem)
                address = re.sub("_PORT.*", "_HOST", name)
                cure = f"set {name} to another port" if known else f"correct {address}"
                refused.append((f"cannot listen on {host}:{port} ({reason}); {cure}", problem.errno))
    return refused


def no_room(folder: Path, needed: int, what: str) -> str | None:
    """A sentence where the disk below a folder, which need not be there yet, has not that many bytes."""
    there = next(part for part in (folder, *folder.parents) if part.is_dir())
    free = shutil.disk_usage(there).free
    if free >= needed:
        return None
    return f"{free / 2**20:.0f} MiB are free at {there}, and {what} needs {needed / 2**20:.0f} MiB: make room first"


def fresh_home(folder: Path) -> str | None:
    """A sentence where a state folder has no room to begin in."""
    return no_room(folder, _HOME_BYTES, "a first start")


def _listeners(environment: Mapping[str, str]) -> list[tuple[str, str, int]]:
    environment = {**environment, **following(environment)}
    found = []
    for name, default in (_API, *((name, default) for name, (default, _) in FOLLOWING.items())):
        host = environment.get(re.sub("_PORT.*", "_HOST", name), "").strip() or "127.0.0.1"
        value = environment.get(name, "").strip() or str(default)
        # A wrong value has its own sentence, once the command that says it is installed.
        if value.isascii() and value.isdecimal() and 0 < int(value) <= _HIGHEST:
            found.append((name, host, int(value)))
    return found


def main(environment: Mapping[str, str], here: Path) -> list[str]:
    """List what stands in the way of an installation in this folder and a start after it."""
    home = here / (environment.get("SERVICE_HOME", "").strip() or ".custody")
    found = [sentence for sentence, _ in unusable(_listeners(environment))]
    rooms = [no_room(here, _PACKAGES_BYTES, "what is installed")]
    if not (home / "db").is_dir():
        rooms.append(fresh_home(home))
    return [*found, *filter(None, rooms)]


if __name__ == "__main__":
    complaints = main(os.environ, Path.cwd())
    for complaint in complaints:
        print(f"custody: {complaint}", file=sys.stderr)
    sys.exit(1 if complaints else 0)
