"""Asking a server of this machine: no proxy, and no reading of certificates, which costs more than the answer.

And what a connection of this machine holds of bytes that nobody reads.
"""

import ssl
from pathlib import Path
from typing import Any

import httpx

from tests.fixtures.eventually import PATIENCE_SECONDS

# The most bytes that the kernels of both ends of one connection keep of what nobody has read: by default, Linux lets
# what comes grow to 32 MiB and what goes to 4. Less is sent in most runs, and how much says nothing of either program.
HELD_BYTES = 64 * 2**20
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def get(url: str, timeout: float = PATIENCE_SECONDS) -> httpx.Response:
    """Ask once."""
    with client(timeout=timeout) as http:
        return http.get(url)


def client(ca_file: Path | None = None, **given: Any) -> httpx.Client:
    """For several questions; with a file of authorities also over TLS."""
    verify = ssl.create_default_context(cafile=ca_file) if ca_file else NO_TLS
    return httpx.Client(verify=verify, trust_env=False, **{"timeout": PATIENCE_SECONDS, **given})
