"""A client that others wrote: x402's own packages for Node, which pay whatever is demanded from a key of their own."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx

from tests.outside import loopback, npm
from tests.outside.processes import running
from tests.outside.x402.seller import HERE

Version = Literal["newest", "lowest"]


class Payer:
    """A program that would pay for its calls by itself."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self._url, self._http = url, http

    def fetch(self, url: str, headers: dict[str, str], version: Version) -> dict[str, Any]:
        """Fetch this; tell what came, how many requests left, and how many of them bore a payment of its own."""
        found: dict[str, Any] = self._http.post(
            self._url, json={"url": url, "headers": headers, "version": version}
        ).json()
        return found


@contextmanager
def running_payer(key: bytes) -> Iterator[Payer]:
    """Start one that has this key."""
    npm.install(HERE)
    node = shutil.which("node") or "node"
    with running([node, HERE / "payer.mjs", "0x" + key.hex()]) as address, loopback.client(timeout=60) as http:
        yield Payer(f"http://{address}/", http)
