"""`python -m ops.healthy PROCESS`: exit status 0 if that process, on this machine, does its work.

What containers ask, so it needs no database and no key, starts fast, and says why not.
"""

import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from custody.kit import environment as read
from custody.kit import metrics_address

_SECONDS = 4
# The slowest job runs once a minute; a scheduler of which no job ended well for this long does not work.
_JOBS_SECONDS = 30.0
_LAST_SUCCESS = "custody_job_last_success_timestamp_seconds{"


def api(environment: Mapping[str, str]) -> str | None:
    """It is ready: database, schema and both workers are there."""
    url = f"http://127.0.0.1:{read.port(environment, 'SERVICE_API_PORT', 3200)}/ready"
    try:
        _get(url)
    except urllib.error.HTTPError as problem:
        return f"{url} answers {problem.code}"
    return None


def signer(environment: Mapping[str, str]) -> str | None:
    """It listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(str(read.sign_socket(environment)))
    return None


def identity(environment: Mapping[str, str]) -> str | None:
    """It listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(str(read.identity_socket(environment)))
    return None


def proxy(environment: Mapping[str, str]) -> str | None:
    """It takes connections, which it does only while it can decide about requests."""
    url = f"http://127.0.0.1:{read.port(environment, 'SERVICE_PROXY_PORT', 8080)}/ready"
    try:
        _get(url)
    except urllib.error.HTTPError as problem:
        return f"{url} answers {problem.code}"
    return None


def scheduler(environment: Mapping[str, str]) -> str | None:
    """A job ended well lately."""
    port = read.port(environment, "SERVICE_METRICS_PORT_SCHEDULER", 3292)
    said = _get(f"{metrics_address.local_url(metrics_address.host(environment), port)}/metrics")
    last = max((float(line.split()[-1]) for line in said.splitlines() if line.startswith(_LAST_SUCCESS)), default=0.0)
    # Metrics are in this unit.
    if time.time() - last > _JOBS_SECONDS:  # noqa: TID251
        return f"no job succeeded in the last {_JOBS_SECONDS:.0f} s"
    return None


CHECKS: dict[str, Callable[[Mapping[str, str]], str | None]] = {
    "api": api,
    "signer": signer,
    "identity": identity,
    "proxy": proxy,
    "scheduler": scheduler,
}


def _get(url: str) -> str:
    # Never through somebody's proxy: it is this machine.
    plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with plain.open(url, timeout=_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def main() -> int:
    """Look, and say what is wrong."""
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        print(f"usage: python -m ops.healthy {'|'.join(CHECKS)}", file=sys.stderr)
        return 2
    try:
        complaint = CHECKS[sys.argv[1]](os.environ)
    except (OSError, ValueError) as problem:
        complaint = str(problem)
    if complaint:
        print(complaint, file=sys.stderr)
    return int(complaint is not None)


if __name__ == "__main__":
    sys.exit(main())
